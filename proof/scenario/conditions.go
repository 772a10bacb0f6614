package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file holds what a script can wait for and expect. Both look at the objects on the API server, never at a
// controller.

const conditionForms = "NUMBER|no KIND [of PARENT [on NODE]] [FIELD=VALUE...], or revisions of PARENT NUMBER=IMAGE..., " +
	"or condition TYPE of OBJECT [FIELD=VALUE...], or no KIND NAME, or OBJECT [FIELD=VALUE...]"

var conditionVerbs = map[string]verb{
	"wait": {"wait " + conditionForms, func(r *reader) action {
		what := strings.TrimPrefix(Step{Verb: "wait", Args: r.args, Options: maps.Clone(r.options)}.String(), "wait ")
		holds := r.condition()
		return func(ctx context.Context, p *Player) error {
			return p.stage.Until(ctx, what, func(ctx context.Context) error { return holds(ctx, p) })
		}
	}},
	"expect": {"expect " + conditionForms + ", or violations none|INVARIANT...", func(r *reader) action {
		if r.is("violations") {
			return r.violations()
		}
		return r.condition()
	}},
}

// violations reads which invariants the history is to break. It says nothing about the order.
func (r *reader) violations() action {
	expected := map[string]bool{}
	for !r.is(none) && r.err == nil {
		expected[r.word("an invariant")] = true
		if len(r.args) == 0 {
			break
		}
	}
	return func(_ context.Context, p *Player) error {
		p.expected = expected
		return nil
	}
}

// condition reads what must hold. It returns nil when it does.
func (r *reader) condition() action {
	n, counted := r.number()
	switch {
	case counted:
		return r.counting(n)
	case r.is("no"):
		return r.counting(0)
	case r.is("condition"):
		return r.statusCondition()
	case len(r.args) > 1 && r.args[0] == "revisions" && r.args[1] == "of":
		return r.log()
	}
	ref := r.reference()
	fields := r.fields(ref.kind)
	return func(ctx context.Context, p *Player) error {
		o, err := ref.one(ctx, p.stage)
		if err != nil {
			return err
		}
		return p.differs(ctx, ref.kind, o, fields)
	}
}

// counting reads a description of objects, of which there must be n. Those that are going count only if the fields say
// something about that.
func (r *reader) counting(n int) action {
	ref := r.description()
	fields := r.fields(ref.kind)
	return func(ctx context.Context, p *Player) error {
		found, err := ref.find(ctx, p.stage)
		if err != nil {
			return err
		}
		var fit []client.Object
		var others []string
		for _, o := range found {
			_, about := fields["terminating"]
			if going(o) && !about && ref.name == "" {
				continue
			}
			if err := p.differs(ctx, ref.kind, o, fields); err != nil {
				others = append(others, err.Error())
				continue
			}
			fit = append(fit, o)
		}
		if len(fit) != n {
			return fmt.Errorf("there are %d (%s); others: %s", len(fit), strings.Join(names(fit), ", "), strings.Join(others, "; "))
		}
		return nil
	}
}

// log reads the whole revision history of a parent: these numbers with these images, and no others.
func (r *reader) log() action {
	ref := r.reference()
	want := r.rest()
	for number := range want {
		if _, err := strconv.Atoi(number); err != nil {
			r.failf("%s is no number of a revision", number)
		}
	}
	return func(ctx context.Context, p *Player) error {
		found, err := ref.find(ctx, p.stage)
		if err != nil {
			return err
		}
		var have, wanted []string
		for _, o := range found {
			image, err := p.field(ctx, ref.kind, o, "image")
			if err != nil {
				return err
			}
			have = append(have, numberOf(o)+"="+image)
		}
		for number, image := range want {
			wanted = append(wanted, number+"="+image)
		}
		slices.Sort(have)
		slices.Sort(wanted)
		if !slices.Equal(have, wanted) {
			return fmt.Errorf("they are %s", strings.Join(have, " "))
		}
		return nil
	}
}

// statusCondition reads a condition in a status: its type and what is to stand in it.
func (r *reader) statusCondition() action {
	name := r.word("a type")
	r.must("of")
	ref, fields := r.reference(), r.rest()
	return func(ctx context.Context, p *Player) error {
		o, err := ref.one(ctx, p.stage)
		if err != nil {
			return err
		}
		tree, err := treeOf(o)
		if err != nil {
			return err
		}
		conditions, err := getPath(tree, "status.conditions")
		if err != nil {
			return err
		}
		items, _ := conditions.([]any)
		for _, item := range items {
			c, ok := item.(map[string]any)
			if ok && c["type"] == name {
				return differences(fields, func(key string) (any, error) { return c[key], nil })
			}
		}
		return fmt.Errorf("%s has no condition %s", ref, name)
	}
}

// fieldWords are the fields that have a word for objects of every kind.
var fieldWords = []string{"image", "node", "number", "owner", "ready", revisionWord, "since", "terminating"}

// fields takes the options that describe an object. A word that nobody knows would be a field that is never there.
func (r *reader) fields(k kind) map[string]string {
	fields := r.rest()
	for key := range fields {
		if _, ok := k.Options[key]; !ok && !slices.Contains(fieldWords, key) && !strings.ContainsAny(key, ".[") {
			r.failf("a %s has no field %s; there are: %s, and any path with a dot, like status.replicas", k.Word, key,
				strings.Join(append(slices.Sorted(maps.Keys(k.Options)), fieldWords...), ", "))
		}
	}
	return fields
}

// differs says in what an object is not as the fields ask.
func (p *Player) differs(ctx context.Context, k kind, o client.Object, fields map[string]string) error {
	if name, ok := fields["since"]; ok {
		m, err := p.moment(name)
		if err != nil {
			return err
		}
		fields = maps.Clone(fields)
		delete(fields, "since")
		if !m.objects[o.GetUID()] {
			return fmt.Errorf("%s was not there at %s", o.GetName(), name)
		}
	}
	err := differences(fields, func(key string) (any, error) { return p.field(ctx, k, o, key) })
	if err != nil {
		return fmt.Errorf("%s: %w", o.GetName(), err)
	}
	return nil
}

func differences(fields map[string]string, get func(string) (any, error)) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value, err := get(key)
		if err == nil && !same(value, fields[key]) {
			err = fmt.Errorf("%s is %s", key, text(value))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// field is a field of an object as text: one that has a word, an option of its kind, or a path.
func (p *Player) field(ctx context.Context, k kind, o client.Object, key string) (string, error) {
	tree, err := treeOf(o)
	if err != nil {
		return "", err
	}
	path := key
	switch key {
	case "terminating":
		return strconv.FormatBool(going(o)), nil
	case "owner":
		if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
			return ref.Name, nil
		}
		return none, nil
	case "node":
		return nodeOf(o), nil
	case "number":
		return numberOf(o), nil
	case "ready":
		return strconv.FormatBool(ready(o)), nil
	case revisionWord:
		return p.cameFrom(ctx, o)
	case "image":
		path = k.Image
	}
	if option, ok := k.Options[key]; ok {
		path = option
	}
	value, err := getPath(tree, path)
	return text(value), err
}

func ready(o client.Object) bool {
	pod, ok := o.(*corev1.Pod)
	return ok && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// cameFrom is the number of the revision that a child says it came from, none if there is none.
func (p *Player) cameFrom(ctx context.Context, child client.Object) (string, error) {
	hash := child.GetLabels()[appsv1.ControllerRevisionHashLabelKey]
	k, _ := kindNamed(revisionWord)
	revisions, _, err := list(ctx, p.stage, k)
	if err != nil || hash == "" {
		return none, err
	}
	for _, r := range revisions {
		if r.GetName() == hash || r.GetLabels()[appsv1.ControllerRevisionHashLabelKey] == hash {
			return numberOf(r), nil
		}
	}
	return none, nil
}
