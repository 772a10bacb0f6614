package history_test

// Parents of kinds whose edits the API server does not count: a ConfigMap has no generation, so that it is 0 before and
// after.

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

var settingsLabels = map[string]string{"configmap": "settings"}

// settings is a log of ConfigMaps that asks the API server. byGeneration is what its format promises, as that of a
// CompositeController does for parents of any kind.
type settings struct {
	t      *testing.T
	log    *history.Log
	client client.Client
	// refused is what it says to dry runs, and mode is the default that it has for a key.
	refused error
	mode    string
	asked   int
}

func newSettings(t *testing.T, byGeneration bool) *settings {
	t.Helper()
	target, err := revision.FieldPaths(revision.Typed[corev1.ConfigMap](), revision.Path{"data"})
	if err != nil {
		t.Fatal(err)
	}
	s := &settings{t: t}
	// The fake client takes a dry run for a patch that is not sent.
	dry := func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		var options client.PatchOptions
		if options.ApplyOptions(opts); len(options.DryRun) == 0 {
			return c.Patch(ctx, o, p, opts...)
		}
		s.asked++
		if s.refused != nil {
			return s.refused
		}
		stored := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), stored); err != nil {
			return err
		}
		err := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(stored).Build().Patch(ctx, o, p)
		if data := o.(*corev1.ConfigMap).Data; s.mode != "" && data["mode"] == "" {
			data["mode"] = s.mode
		}
		return err
	}
	create := func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		o.SetUID(types.UID("uid-of-" + o.GetName()))
		return c.Create(ctx, o, opts...)
	}
	funcs := interceptor.Funcs{Patch: dry, Create: create}
	s.client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(funcs).Build()
	s.log = history.New(&history.Apps{
		Parent: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Versioned: target, ByGeneration: byGeneration,
		HashLabel:  "controller-revision-hash",
		SelectorOf: func(client.Object) (labels.Selector, error) { return labels.SelectorFromSet(settingsLabels), nil },
		NewParent:  func() client.Object { return &corev1.ConfigMap{} },
		Labels:     func(client.Object) map[string]string { return settingsLabels },
	}, history.Options{Client: s.client, AskServer: true, Cache: history.NewCache(history.DefaultCacheBytes)})
	return s
}

// edit stores other data.
func (s *settings) edit(data map[string]string) *corev1.ConfigMap {
	s.t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
	err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(o), o)
	if o.Data = data; apierrors.IsNotFound(err) {
		err = s.client.Create(s.t.Context(), o)
	} else if err == nil {
		err = s.client.Update(s.t.Context(), o)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// record records a parent and returns the number of its revision.
func (s *settings) record(o *corev1.ConfigMap) (int64, error) {
	entries, err := s.log.Claim(s.t.Context(), o, labels.SelectorFromSet(settingsLabels))
	if err != nil {
		return 0, err
	}
	v, err := s.log.Resolve(s.t.Context(), o, entries)
	if err != nil {
		return 0, err
	}
	out, err := s.log.Record(s.t.Context(), o, v, nil, nil)
	if err != nil {
		return 0, err
	}
	return out.Update.Number, nil
}

// A key more or less is another revision: neither a generation that is always 0 nor a stamp of it says that nothing
// changed.
func TestEditsThatNobodyCounts(t *testing.T) {
	few, more := map[string]string{"color": "red"}, map[string]string{"color": "red", "size": "1"}
	for name, refused := range map[string]error{
		"asked": nil, "refused": apierrors.NewForbidden(schema.GroupResource{}, "settings", errors.New("no dry runs")),
	} {
		for _, byGeneration := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := newSettings(t, byGeneration)
				s.refused = refused
				for i, data := range []map[string]string{few, more, {"color": "blue"}, few, more} {
					if got, err := s.record(s.edit(data)); err != nil || got != int64(i+1) {
						t.Errorf("edit %d is revision %d, %v", i, got, err)
					}
				}
				if s.asked == 0 {
					t.Error("the API server was not asked: the test shows nothing")
				}
			})
		}
	}
}

// An old read of a parent is no new revision, although its generation is that of the new one. What is not versioned may
// change.
func TestAnOldReadThatNobodyCounts(t *testing.T) {
	s := newSettings(t, false)
	old := s.edit(map[string]string{"color": "red"}).DeepCopy()
	s.edit(map[string]string{"color": "green"})
	if n, err := s.record(old); !errors.Is(err, history.ErrStale) {
		t.Errorf("recorded %d, %v", n, err)
	}
	fresh := s.edit(map[string]string{"color": "green"}).DeepCopy()
	labelled := fresh.DeepCopy()
	labelled.Labels = map[string]string{"seen": "yes"}
	if err := s.client.Update(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	if n, err := s.record(fresh); err != nil || n != 1 {
		t.Errorf("recorded %d, %v", n, err)
	}
}

// An answer of the API server is about the parent as it was when it was asked.
func TestAnswersThatNobodyCounts(t *testing.T) {
	s := newSettings(t, false)
	if n, err := s.record(s.edit(map[string]string{"color": "red"})); err != nil || n != 1 {
		t.Fatalf("recorded %d, %v", n, err)
	}
	s.mode = "fast" // a new version of its controller fills it in
	for i, mode := range []string{"fast", "slow"} {
		if n, err := s.record(s.edit(map[string]string{"color": "red", "mode": mode})); err != nil || n != int64(i+1) {
			t.Errorf("mode %s is revision %d, %v", mode, n, err)
		}
	}
}
