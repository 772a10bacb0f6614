package fault

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file lets package check judge the runs. One recorder watches all namespaces for the whole sweep: a recording of
// each run by itself would take longer than the run.

const (
	// settled is how long nothing may be asked for until a run counts as over: longer than the second for which a status
	// that is not urgent is held back.
	settled = 1200 * time.Millisecond
	// still is how long it must stay over.
	still = 400 * time.Millisecond
	// unrest bounds the wait for that.
	unrest = time.Minute
)

// record starts the recording of a sweep.
func (s *Sweep) record(ctx context.Context) (*recording.Recorder, error) {
	cfg := rest.CopyConfig(s.User)
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return recording.Record(ctx, client, []string{metav1.NamespaceAll}, s.Scopes)
}

// settle waits until the managers ask for nothing any more, and nothing happens in the namespace. That they write
// nothing from then on is for [check.Quiet] to say.
func settle(ctx context.Context, e *Env) error {
	bound, cancel := patient(ctx, unrest)
	defer cancel()
	asked, changed := -1, e.changed()
	// A look that comes late counts as one that does not: on a machine that has too much to do, the managers are late as
	// well.
	for quiet, last := time.Duration(0), time.Now(); quiet < settled; {
		select {
		case <-changed:
			quiet, changed = 0, e.changed()
		case <-time.After(poll):
			quiet += min(time.Since(last), poll)
		case <-bound.Done():
			return fmt.Errorf("C1: the end is reached, and there is no rest: %w", context.Cause(bound))
		}
		last = time.Now()
		if n := e.asked(); n != asked || e.busy() {
			asked, quiet = n, 0
		}
	}
	return nil
}

// asked is how many writes the managers have asked for so far.
func (e *Env) asked() (n int) {
	for _, k := range e.managers {
		n += k.Faults.Count()
	}
	return n
}

// busy reports whether a manager is to be waited for that asks for nothing: by what was done to it, or because it
// starts.
func (e *Env) busy() bool {
	return slices.ContainsFunc(e.managers, func(k *Keeper) bool { return k.Starting() || k.Faults.Busy() })
}

// now is the resource version of the newest state.
func now(ctx context.Context, e *Env) (uint64, error) {
	list, err := e.Client.CoreV1().ConfigMaps(e.Namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("ask what time it is: %w", err)
	}
	return strconv.ParseUint(list.ResourceVersion, 10, 64)
}

// judge waits until the recording has all that the runs did, and looks at them one by one.
func (r *run) judge(ctx context.Context, outcomes []*outcome) error {
	if _, err := r.recorder.Sync(ctx); err != nil {
		return fmt.Errorf("record the sweep: %w", err)
	}
	errs := make(chan error, len(outcomes))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	for _, o := range outcomes {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := r.judgeOne(o); err != nil {
				errs <- fmt.Errorf("judge %s: %w", o.trial, err)
			}
		})
	}
	running.Wait()
	close(errs)
	return <-errs
}

func (r *run) judgeOne(o *outcome) error {
	h, err := r.recorder.HistoryOf(o.namespace, o.end)
	if err != nil {
		return err
	}
	if err := r.missing(h, h.Attach(o.entries, nil)); err != nil {
		return err
	}
	if r.Notes != nil {
		h.Notes = r.Notes(o.namespace)
	}
	o.states = len(h.Events)
	o.violations = check.Check(h, r.Kinds...)
	if o.err == nil {
		o.violations = append(o.violations, check.Rest(h, o.end, r.Kinds...)...)
		o.violations = append(o.violations, check.Quiet(h, o.rest, o.end, r.Kinds...)...)
	}
	return nil
}

// missing reports a write that the server took and the recording does not have.
func (s *Sweep) missing(h *check.History, lost []check.Entry) error {
	for _, e := range lost {
		recorded := slices.ContainsFunc(s.Scopes, func(scope check.Scope) bool {
			return scope.Resource.Group == e.Group && scope.Resource.Resource == e.Resource
		})
		if !recorded || e.RV <= h.Origin || e.RV > h.Complete {
			continue
		}
		if !slices.ContainsFunc(h.Events, func(event check.Event) bool { return event.RV == e.RV }) {
			return fmt.Errorf("no event belongs to %+v", e)
		}
	}
	return nil
}
