package check

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds what is true of runs of a schedule when nothing is left to do: J4 and J6.

// scheduled is J6 and J4 at rest: the latest time that could be served was, the status knows of all that was done, and
// no more finished runs are there than are kept.
func (r *rest) scheduled(parent client.Object) {
	if r.k.Runs == nil {
		return
	}
	of, ended := r.k.Runs.Of(parent), map[string]int{}
	for _, child := range r.k.runs(r.s, parent) {
		run := r.k.Runs.Run(child, parent)
		comes := run.scheduled() && !r.h.Clock.IsZero() && run.At.After(r.h.Clock) // nothing accounts for that one yet
		if child.GetDeletionTimestamp() == nil && !comes {
			ended[run.Ended]++
		}
		if run.scheduled() && of.Served.Before(run.At) && !comes {
			r.violationf("J6", r.k.Parents, parent, "%s was started for %s, and the status says that %s was served last",
				child.GetName(), stamp(run.At), stamp(of.Served))
		}
		if of.Succeeded.Before(run.Succeeded) {
			r.violationf("J6", r.k.Parents, parent, "%s has succeeded at %s, and the status says %s",
				child.GetName(), stamp(run.Succeeded), stamp(of.Succeeded))
		}
	}
	for end, most := range of.Keeps {
		if ended[end] > most {
			r.violationf("J4", r.k.Parents, parent, "%d runs are there that ended as %s, and %d are kept", ended[end], end, most)
		}
	}
	r.known(parent, of)
	r.served(parent, of)
}

// known is J6 for the times of the status: each is that of a run that there was.
func (r *rest) known(parent client.Object, of Schedule) {
	served, succeeded := of.Served.IsZero(), of.Succeeded.IsZero()
	see := func(o client.Object) {
		run := r.k.Runs.Run(o, parent)
		served = served || run.At.Equal(of.Served)
		succeeded = succeeded || run.Succeeded.Equal(of.Succeeded)
	}
	for key, o := range r.h.Initial {
		if key.Resource == r.k.Children {
			see(o)
		}
	}
	for _, e := range r.h.Events {
		if e.Key.Resource == r.k.Children {
			see(e.Object())
		}
	}
	if !served || !succeeded {
		r.violationf("J6", r.k.Parents, parent, "its status says that %s was served and that one succeeded at %s, and there never was such a run",
			stamp(of.Served), stamp(of.Succeeded))
	}
}

// served is J6 for what is due: by the clock of the controllers it has been served, unless it may not be.
func (r *rest) served(parent client.Object, of Schedule) {
	now := r.h.Clock
	if now.IsZero() || of.Suspended {
		return
	}
	after := parent.GetCreationTimestamp().Time
	for _, at := range []time.Time{of.Served, r.edited(parent)} {
		if at.After(after) {
			after = at
		}
	}
	due := r.k.Runs.Latest(parent, after, now)
	if due.IsZero() || of.Deadline != nil && due.Before(now.Add(-*of.Deadline)) {
		return
	}
	if r.s.Get(recording.Key{Resource: r.k.Children, Namespace: parent.GetNamespace(), Name: of.Name(due)}) != nil {
		return // the name is taken
	}
	if of.Forbids && len(of.Active) > 0 {
		return
	}
	r.violationf("J6", r.k.Parents, parent, "a run is due for %s, and nothing stands in the way", stamp(due))
}

// edited is when a parent got its schedule, and everybody saw it: what was due before by that one is not missed. Zero
// if it always had it.
func (r *rest) edited(parent client.Object) (at time.Time) {
	for _, e := range r.h.Events {
		if e.RV <= r.s.RV && e.New != nil && e.Old != nil && e.New.GetUID() == parent.GetUID() && e.By != nil &&
			r.k.Runs.Of(e.Old).Says != r.k.Runs.Of(e.New).Says {
			at = e.By.At
		}
	}
	if !at.IsZero() && at.Before(r.h.Calm) {
		return r.h.Calm // who goes by a cache may have looked at the other one until then
	}
	return at
}
