package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// images are rolled out one after the other. The undo goes back to the second.
var images = []string{"nginx:1.27", "nginx:1.28", "nginx:1.29"}

// slow is how long pods take to be Ready, and never longer than anybody waits.
const (
	slow  = "1s"
	never = "24h"
)

// trial is what is found out about an object of a kind.
type trial struct {
	*bench
	kind
	namespace string
	found     map[string]error // by verb; nil is as it should be
}

// try makes an object of the kind, and asks the command line about it.
func (b *bench) try(ctx context.Context, k kind) map[string]error {
	name, _, _ := strings.Cut(k.file, ".")
	t := &trial{bench: b, kind: k, namespace: "compat-" + name, found: map[string]error{}}
	if _, err := b.kubectl(ctx, "", "create", "namespace", t.namespace); err != nil {
		t.found[verbs[0]] = err
		return t.found
	}
	if err := t.play(ctx); err != nil {
		for _, verb := range verbs { // the first that was not asked
			if _, asked := t.found[verb]; !asked {
				t.found[verb] = err
				break
			}
		}
	}
	fmt.Fprintln(b.out)
	if _, err := b.kubectl(ctx, "", "delete", "namespace", t.namespace, "--wait=false"); err != nil {
		fmt.Fprintln(b.out, "compat:", err)
	}
	return t.found
}

// play is the story. An error says why it does not go on; what the command line says wrongly is noted, and it goes on.
func (t *trial) play(ctx context.Context) error {
	fmt.Fprintf(t.out, "\n== %s, in the namespace %s\n", t.object, t.namespace)
	older, err := t.rollOut(ctx)
	if err != nil {
		return err
	}
	t.note("history", t.history(ctx, t.revisions()))
	t.note("status", t.status(ctx))
	t.note("diff", t.diff(ctx))
	if t.found["undo"] = t.undo(ctx, older); t.found["undo"] != nil {
		_, _ = t.ask(ctx, "status") // for who reads why
	}
	t.note("history", t.history(ctx, t.revisions()))
	t.note("tree", t.tree(ctx))
	t.note("verify", t.verify(ctx))
	return nil
}

// revisions is how many there are: also after the undo, which makes none, or one in place of another.
func (t *trial) revisions() int {
	if t.forgets {
		return len(images) - 1
	}
	return len(images)
}

// note keeps what went wrong first.
func (t *trial) note(verb string, err error) {
	if t.found[verb] == nil {
		t.found[verb] = err
	}
}

// rollOut rolls the images out, one after the other, and returns the spec with the older one.
func (t *trial) rollOut(ctx context.Context) (older any, err error) {
	if err := t.apply(ctx, t.file, images[0], slow); err != nil {
		return nil, err
	}
	if t.beside != "" {
		if err := t.apply(ctx, t.beside, "", slow); err != nil {
			return nil, err
		}
	}
	if err := t.done(ctx, images[0]); err != nil {
		return nil, err
	}
	if err := t.change(ctx, images[1]); err != nil {
		return nil, err
	}
	o, err := t.get(ctx)
	if err != nil {
		return nil, err
	}
	if !t.forgets {
		return o.Object["spec"], t.change(ctx, images[2])
	}
	if err := t.apply(ctx, t.file, images[2], never); err != nil {
		return nil, err
	}
	return o.Object["spec"], t.until(ctx, "a pod runs "+images[2], func() error { return t.reached(ctx, images[2]) })
}

// change rolls an image out in place of another one.
func (t *trial) change(ctx context.Context, image string) error {
	if err := t.apply(ctx, t.file, image, slow); err != nil {
		return err
	}
	return t.done(ctx, image)
}

// apply applies a file, as soon as the webhooks of its kind are served.
func (t *trial) apply(ctx context.Context, file, image, ready string) error {
	text, err := objects.ReadFile("objects/" + file)
	if err != nil {
		return err
	}
	object := strings.NewReplacer("$IMAGE", image, "$READY", ready, "$NAMESPACE", t.namespace).Replace(string(text))
	return t.until(ctx, file+" is accepted", func() error {
		_, err := t.kubectl(ctx, object, "apply", "--namespace", t.namespace, "-f", "-")
		return err
	})
}

// done returns when the command line says that the object is done and all pods run the image. If it said so twice in a
// row before they did, that is noted: once may be because the controller has not reported yet.
func (t *trial) done(ctx context.Context, image string) error {
	early := 0
	return t.until(ctx, "it is done, and all pods run "+image, func() error {
		text, said := t.state(ctx)
		running := t.run(ctx, image)
		if said == nil && running != nil {
			early++
		} else {
			early = 0
		}
		if early == 2 {
			t.note("status", errors.New("says done while pods run another image, or are not Ready"))
			fmt.Fprintf(t.out, "compat: %s; %s; status says\n%s\n", running, t.reported(ctx), text)
		}
		return errors.Join(said, running)
	})
}

// reported is the status of the object, as its controller reports it.
func (t *trial) reported(ctx context.Context) string {
	o, err := t.get(ctx)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("generation %d, status %s", o.GetGeneration(), printed(o.Object["status"]))
}

// printed is a value as JSON.
func printed(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// running returns the images that the pods run which are not terminating and Ready, and those of the others.
func (t *trial) running(ctx context.Context) (ready, others []string, err error) {
	var list corev1.PodList
	if err := t.List(ctx, &list, client.InNamespace(t.namespace), client.MatchingLabels{"app": "web"}); err != nil {
		return nil, nil, err
	}
	for _, pod := range list.Items {
		image := "no container web"
		for _, c := range pod.Spec.Containers {
			if c.Name == "web" {
				image = c.Image
			}
		}
		isReady := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		switch {
		case pod.DeletionTimestamp != nil:
		case isReady:
			ready = append(ready, image)
		default:
			others = append(others, image)
		}
	}
	return ready, others, nil
}

// run returns nil if as many pods as are wanted run the image and are Ready, and no others are there.
func (t *trial) run(ctx context.Context, image string) error {
	ready, others, err := t.running(ctx)
	if err != nil {
		return err
	}
	wrong := slices.ContainsFunc(ready, func(i string) bool { return i != image })
	if wrong || len(ready) != t.pods || len(others) > 0 {
		return fmt.Errorf("the pods that are Ready run %q, the others %q; %d should run %s", ready, others, t.pods, image)
	}
	return nil
}

// reached returns nil as soon as a pod has the image.
func (t *trial) reached(ctx context.Context, image string) error {
	ready, others, err := t.running(ctx)
	if err == nil && !slices.Contains(append(ready, others...), image) {
		err = fmt.Errorf("the pods run %q", append(ready, others...))
	}
	return err
}

// get returns the object as it is stored.
func (t *trial) get(ctx context.Context) (*unstructured.Unstructured, error) {
	text, err := objects.ReadFile("objects/" + t.file)
	if err != nil {
		return nil, err
	}
	var o unstructured.Unstructured
	if err := utilyaml.Unmarshal(text, &o.Object); err != nil {
		return nil, err
	}
	key := client.ObjectKey{Namespace: t.namespace, Name: o.GetName()}
	if t.shared {
		key.Namespace = ""
	}
	return &o, t.Get(ctx, key, &o)
}

// kept returns how many revisions the object controls: those that its controller made, whatever the command line says.
func (t *trial) kept(ctx context.Context) (n int, err error) {
	o, err := t.get(ctx)
	if err != nil {
		return 0, err
	}
	var revisions appsv1.ControllerRevisionList
	var sets appsv1.ReplicaSetList
	if err := errors.Join(t.List(ctx, &revisions), t.List(ctx, &sets)); err != nil {
		return 0, err
	}
	count := func(it metav1.Object) {
		if owner := metav1.GetControllerOf(it); owner != nil && owner.UID == o.GetUID() {
			n++
		}
	}
	for i := range revisions.Items {
		count(&revisions.Items[i])
	}
	for i := range sets.Items {
		count(&sets.Items[i])
	}
	return n, nil
}

// ask prints a question to the command line and its answer, and returns what it printed on its standard output.
func (t *trial) ask(ctx context.Context, verb string, args ...string) (string, error) {
	fmt.Fprintf(t.out, "\n$ cairn %s\n", strings.Join(append([]string{verb, t.object}, args...), " "))
	text, warnings, err := t.cairn(ctx, append([]string{verb, t.object}, args...)...)
	fmt.Fprint(t.out, warnings, text)
	if err != nil {
		fmt.Fprintln(t.out, "=>", err)
	}
	return text, err
}

// cairn runs the command line and returns what it prints on its standard output, and the rest. The error says what it
// ended with.
func (t *trial) cairn(ctx context.Context, args ...string) (text, rest string, err error) {
	cmd := exec.CommandContext(ctx, filepath.Join("bin", "cairn"), append(args, "--namespace", t.namespace)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+t.kubeconfig)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("cairn %s: %w", args[0], err)
	}
	return stdout.String(), stderr.String(), err
}

// state returns what status prints. The error is nil if it says that the object is done, and does not warn that the
// controller has not seen it.
func (t *trial) state(ctx context.Context) (text string, err error) {
	text, rest, err := t.cairn(ctx, "status", t.object)
	if err != nil || strings.Contains(rest, "controller has not") {
		line, _, _ := strings.Cut(rest+text, "\n")
		err = errors.Join(err, errors.New(line))
	}
	return text, err
}

// status asks whether the object is done, which it is unless its last image is broken.
func (t *trial) status(ctx context.Context) error {
	_, err := t.ask(ctx, "status")
	const inProgress = 2
	var exit *exec.ExitError
	switch {
	case !t.forgets:
		return err
	case errors.As(err, &exit) && exit.ExitCode() == inProgress:
		return nil
	case err != nil:
		return err
	}
	return errors.New("says done of a rollout that waits for its pods")
}

// history asks for the revisions: as many as that, of which one is current, and as many as the controller keeps.
func (t *trial) history(ctx context.Context, want int) error {
	if err := t.until(ctx, fmt.Sprintf("the controller keeps %d revisions", want), func() error {
		kept, err := t.kept(ctx)
		if err == nil && kept != want {
			err = fmt.Errorf("it keeps %d", kept)
		}
		return err
	}); err != nil {
		return err
	}
	if _, err := t.ask(ctx, "history"); err != nil {
		return err
	}
	text, _, err := t.cairn(ctx, "history", t.object, "-o", "json")
	if err != nil {
		return err
	}
	var got struct {
		Revisions []struct {
			Current bool `json:"current"`
		} `json:"revisions"`
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return err
	}
	last := len(got.Revisions) - 1
	switch {
	case len(got.Revisions) != want:
		return fmt.Errorf("history shows %d revisions of %d", len(got.Revisions), want)
	case !got.Revisions[last].Current:
		return errors.New("history does not mark the last revision as the current one")
	}
	return nil
}

// diff asks for what the undo would change, and expects a line for each image, and no other but what the controller
// injects.
func (t *trial) diff(ctx context.Context) error {
	text, err := t.ask(ctx, "diff", "-o", "changes")
	if err != nil {
		return err
	}
	images := fmt.Sprintf("image: %s → %s", images[1], images[2])
	if !strings.Contains(text, images) {
		return fmt.Errorf("diff does not show %q", images)
	}
	for line := range strings.Lines(text) {
		expected := strings.Contains(line, images) || t.injects != "" && strings.Contains(line, t.injects) ||
			t.forgets && strings.Contains(line, "annotations")
		if !expected {
			return fmt.Errorf("diff also shows %q", strings.TrimSpace(line))
		}
	}
	return nil
}

// undo asks for the older image, and waits until the controller has done it: all pods run that image, the command line
// says so, and the spec is what it was then, but for what is empty: a revision may have that where the object has not.
func (t *trial) undo(ctx context.Context, older any) error {
	if _, err := t.ask(ctx, "undo", "--yes"); err != nil {
		return err
	}
	if err := t.done(ctx, images[1]); err != nil {
		return err
	}
	o, err := t.get(ctx)
	if err != nil {
		return err
	}
	if now := o.Object["spec"]; !reflect.DeepEqual(content.Prune(now), content.Prune(older)) {
		fmt.Fprintf(t.out, "compat: the spec was\n%s\nand is\n%s\n", printed(older), printed(now))
		return errors.New("the spec is not what it was with the older image")
	}
	return nil
}

// tree asks for what the object controls, and expects the pods in it.
func (t *trial) tree(ctx context.Context) error {
	text, err := t.ask(ctx, "tree")
	if err != nil || t.shared {
		return err
	}
	if shown := strings.Count(text, " pod/"); shown != t.pods {
		return fmt.Errorf("tree shows %d pods of %d", shown, t.pods)
	}
	return nil
}

// verify asks for what is wrong with the history: nothing, or what the controller is known to do.
func (t *trial) verify(ctx context.Context) error {
	text, err := t.ask(ctx, "verify")
	switch {
	case !t.repeats:
		return err
	case strings.Count(text, "SameContent") == 1:
		return nil
	}
	return errors.New("verify does not say that one revision repeats another")
}
