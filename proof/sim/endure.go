package sim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is how a world lives with a trouble that lasts: one manager, no other faults, everything is done fairly.
// What fails, fails for a long time, so that the pace of who tries again can be seen, and what does not need it must go
// on.

const (
	// endurance is how long it lasts each time, and there are two: at the beginning somebody has edited something, and
	// then, when whoever failed has slowed down, a child is lost and others have to start again.
	endurance = 12 * time.Minute
	// promptly is how long after the last thing that happened all timers are over: minReadySeconds are 30 at most. A
	// back-off from then on has its tries after 20 and after 41 seconds, so that nothing is right because of those.
	promptly = 33 * time.Second
	// mostEndured bounds the things done. A controller that does not slow down at all would need infinitely many.
	mostEndured = 3000
)

// endure lets the world live with its trouble for a while.
func (w *world) endure() {
	if w.trouble == nil {
		return
	}
	w.tracef("endure")
	w.quieten()
	w.setTrouble(false)
	for _, k := range w.kinds {
		if len(w.all(k.Check.Parents)) == 0 {
			w.create(k)
		}
	}
	w.stopClocks(0)
	w.settle(4 * promptly)
	w.frozen.Store(nil)
	if d := w.trouble.denial; d != nil && d.quota > 0 {
		d.quota = max(1, len(w.all(d.resource))-w.trouble.chance.IntN(2))
		w.trouble.aboutf("%s", d)
	}
	w.setTrouble(true)
	w.stir()
	if w.trouble.rejects {
		w.demand(rejectedImage)
	}
	if w.trouble.guards {
		for range w.trouble.chance.IntN(40) {
			w.step++
			w.fair()
		}
		w.attack()
	}
	if w.last() {
		w.loseSome()
		w.last()
	}
	if w.trouble.rejects {
		w.mend()
	}
}

// stir lets the user edit all parents, so that there is something to do; and children count only when they have been
// ready for a while, in most worlds.
func (w *world) stir() {
	t := w.trouble
	for _, k := range w.kinds {
		for _, parent := range w.all(k.Check.Parents) {
			for _, e := range k.Edits {
				if e.Name == minReady && t.chance.IntN(4) > 0 {
					w.change(k, e, parent.GetName())
				}
			}
			if t.denial != nil && t.denial.quota > 0 {
				w.outgrow(k, parent.GetName())
			}
			for range 1 + t.chance.IntN(2) {
				w.change(k, k.Edits[t.chance.IntN(min(3, len(k.Edits)))], parent.GetName())
			}
		}
	}
	if t.chance.IntN(5) == 0 {
		w.user()
	}
	w.wait()
}

// outgrow scales a parent until it asks for more children than it has, if it can be scaled.
func (w *world) outgrow(k Kind, name string) {
	at := slices.IndexFunc(k.Edits, func(e Edit) bool { return e.Name == scaleEdit })
	for range 8 {
		parent := w.get(k.Check.Parents, w.home(k.Check.Parents), name)
		if at < 0 || k.Check.Most == nil || parent == nil || k.Check.Most(parent) > len(w.owned(k.Check.Children, parent)) {
			return
		}
		w.change(k, k.Edits[at], name)
	}
}

// change does an edit until it changes something, a few times at most.
func (w *world) change(k Kind, e Edit, name string) {
	for range 4 {
		parent := w.get(k.Check.Parents, w.home(k.Check.Parents), name)
		if parent == nil {
			return
		}
		w.play("edit "+e.Name, "edit", k.Check.Parents, name, e.Fields(w.trouble.chance, parent))
		if now := w.get(k.Check.Parents, w.home(k.Check.Parents), name); now != nil && now.GetGeneration() > parent.GetGeneration() {
			return
		}
	}
}

// last lets everything happen that can, until the time is over. It returns false if too much happened.
func (w *world) last() bool {
	span := recording.Span{From: w.clock.Now(), What: w.trouble.about}
	end := span.From.Add(endurance)
	changed, looked := w.clock.Now(), false
	seen := len(w.history.Events)
	done := 0
	for ; done < mostEndured && w.clock.Now().Before(end); done++ {
		w.step++
		w.bury()
		if len(w.processes) == 0 {
			w.startNext()
		}
		if d := w.trouble.denial; d != nil && w.clock.Since(span.From) > endurance/2 {
			d.other = true
		}
		busy := w.fair()
		if n := w.disturbances(seen); n > 0 {
			changed, looked = w.clock.Now(), false
		}
		seen = len(w.history.Events)
		if busy {
			continue
		}
		if !looked && w.clock.Since(changed) >= promptly {
			looked = true
			w.prompt()
		}
		wait := end.Sub(w.clock.Now())
		if !looked {
			wait = min(wait, promptly-w.clock.Since(changed))
		}
		w.sleep(w.nextDue(wait))
	}
	w.unheardOf()
	if d := w.trouble.denial; d != nil {
		d.other = false
	}
	span.To = w.clock.Now()
	w.history.Lasting = append(w.history.Lasting, span)
	w.stats.count("troubles that lasted")
	return done < mostEndured
}

// disturbances counts the writes from one on that may have anybody wait: all but those to parents and revisions.
func (w *world) disturbances(from int) int {
	n := 0
	for _, e := range w.history.Events[from:] {
		own := e.By != nil && isManager(e.By)
		family := false
		for _, k := range w.kinds {
			family = family || e.Key.Resource == k.Check.Parents || e.Key.Resource == k.Check.Revisions
		}
		if !own || !family {
			n++
		}
	}
	return n
}

// prompt sees that what needs none of the failing writes has come to its end.
func (w *world) prompt() {
	t := w.trouble
	if t.inject != nil && t.inject.takes || t.rejects {
		return // nothing is made that would be lost at once; or what fails is waited for
	}
	answers := t.hook == nil && t.author == ""
	if !answers || t.slow != nil || t.skew != nil || t.denial != nil && (t.denial.stopsStatus(w) || t.denial.stopsClaims(w)) {
		return
	}
	w.stats.count("looked whether all is prompt")
	w.found = append(w.found, check.Prompt(&w.history, w.server.ResourceVersion(), w.failing(), w.checkKinds()...)...)
}

// stopsStatus reports whether the status cannot be written either.
func (d *denial) stopsStatus(w *world) bool {
	for _, k := range w.kinds {
		if d.resource == k.Check.Parents {
			return true
		}
	}
	return false
}

// stopsClaims reports whether somebody may want an orphan and cannot have it. A pass ends there, as with the built-in
// controllers: what is made beside a child that nobody could adopt may be one too many.
func (d *denial) stopsClaims(w *world) bool {
	return slices.ContainsFunc(w.all(d.resource), func(o client.Object) bool {
		adopts := model.Request{Verb: model.VerbPatch, Resource: d.resource, Namespace: o.GetNamespace(), Name: o.GetName()}
		return ownerOf(o) == "" && o.GetDeletionTimestamp() == nil && d.hits(w, adopts)
	})
}

// failing says what the trouble does not let happen.
func (w *world) failing() check.Failing {
	out := check.Failing{What: w.trouble.about, Observes: true, Deletes: true, Creates: func(string) bool { return true }}
	d := w.trouble.denial
	out.Observes = !w.trouble.guards // a number above all others leaves no room for a new revision
	if d == nil || d.dry {
		return out
	}
	out.Observes = d.lets(w)
	creates, deletes := d.verb == "" || d.verb == model.VerbCreate, d.verb == "" || d.verb == model.VerbDelete
	if d.resource == pods {
		out.Deletes = !deletes
	}
	if d.resource != pods && !deletes || d.quota > 0 || creates && d.one == "" {
		out.Creates = nil
	} else if creates && d.resource == pods {
		out.Creates = func(place string) bool { return !strings.HasSuffix(place, "-"+d.one) }
	}
	return out
}

// lets reports whether what is refused stands in nobody's way who observes an edit: neither the recording of a revision
// nor the claims on children.
func (d *denial) lets(w *world) bool {
	if d.verb == model.VerbDelete {
		return true
	}
	for _, k := range w.kinds {
		if d.resource == k.Check.Revisions {
			return false
		}
	}
	return d.verb == model.VerbCreate
}

// loseSome takes a child from each parent, and lets the others start again.
func (w *world) loseSome() {
	for _, k := range w.kinds {
		if !k.hasChildren() {
			continue
		}
		for _, parent := range w.all(k.Check.Parents) {
			children := w.owned(k.Check.Children, parent)
			if len(children) == 0 {
				continue
			}
			lost := w.trouble.chance.IntN(len(children))
			for n, child := range children {
				if n == lost {
					w.deleteOne("lose a child", k.Check.Children, child)
				} else {
					w.unreadyOnce(child)
				}
			}
		}
	}
	w.wait()
}

// unreadyOnce lets a pod fail its check. Its kubelet finds it well again the next time.
func (w *world) unreadyOnce(child client.Object) {
	pod, ok := child.(*corev1.Pod)
	if ok && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && ready(pod) {
		w.setPhase(pod, corev1.PodRunning, false)
	}
}
