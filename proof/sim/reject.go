package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is content that kubelets refuse: their pods fail at once, and whoever replaces them has to slow down. An
// edit that mends the content must not wait for that.

// rejectedImage is one of those that users choose. While kubelets reject it, its pods fail.
const rejectedImage = "app:v4"

// makeRejection has a place where children are pods of a template that has failed ones replaced, later each time.
// ReplicaSets replace them at once, as upstream's do.
func (t *trouble) makeRejection(w *world) bool {
	t.rejects = !slices.ContainsFunc(w.kinds, func(k Kind) bool { return len(k.Hosted) > 0 || k.Timed || !k.hasRevisions() })
	t.aboutf("kubelets reject pods of %s", rejectedImage)
	return t.rejects
}

// rejected reports whether the kubelet lets a pod fail.
func (w *world) rejected(pod *corev1.Pod) bool {
	return w.troubled().rejects && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == rejectedImage })
}

// demand lets the user ask all parents for an image.
func (w *world) demand(image string) {
	for _, k := range w.kinds {
		for _, parent := range w.all(k.Check.Parents) {
			w.person("edit the image", scenario.Step{
				Verb: "edit", Args: []string{scenario.Word(k.Check.Parents), parent.GetName()}, Options: fields{"image": image},
			})
		}
	}
	w.wait()
}

// mend lets the user ask for an image that works, after all has failed for a while, and sees that this comes soon.
func (w *world) mend() {
	w.demand("app:v1")
	end := w.clock.Now().Add(promptly)
	for done := 0; done < mostEndured && w.clock.Now().Before(end); done++ {
		w.step++
		w.bury()
		if !w.fair() {
			w.sleep(w.nextDue(min(time.Second, end.Sub(w.clock.Now()))))
		}
	}
	w.stats.count("looked whether a mend is prompt")
	w.found = append(w.found, check.Mended(&w.history, w.server.ResourceVersion(), w.clock.Now(), promptly, w.checkKinds()...)...)
}
