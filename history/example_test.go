package history_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// A ConfigMap is edited three times and undone. Each time its log is brought up to date; then the log is read, its
// oldest revision is restored, and what nobody needs is deleted. A controller gives a manager's client, and its API
// reader as Live; builder.Attach does all of that.
func Example() {
	ctx := context.Background()
	c, settings := apiServer(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "1"}}
	format, err := settingsFormat()
	if err == nil {
		err = c.Create(ctx, settings)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	log := history.New(format, history.Options{Client: c})
	for _, color := range []string{"red", "green", "blue", "green"} {
		settings.Data = map[string]string{"color": color}
		if err := c.Update(ctx, settings); err != nil {
			fmt.Println(err)
			return
		}
		change, recorded, err := record(ctx, log, settings)
		if errors.Is(err, history.ErrStale) {
			return // and come back: what was read is older than what the API server has
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(color, "is", change, "revision", recorded.Update.Number)
	}

	entries, err := log.List(ctx, settings) // oldest first
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range entries {
		fmt.Printf("revision %d has the label %s\n", e.Number, e.Hash)
	}
	var before corev1.ConfigMap
	if err := entries[0].Snapshot.Into(&before); err != nil { // Restore gives the whole parent, and RestorePatch an undo
		fmt.Println(err)
		return
	}
	fmt.Println("the oldest one is", before.Data["color"])

	update, live := entries[len(entries)-1], revision.NewInUse() // nothing carries a label of one
	if err := log.Truncate(ctx, settings, entries, update, live, 1); err != nil {
		fmt.Println(err)
		return
	}
	entries, err = log.List(ctx, settings)
	fmt.Println(len(entries), "are left", err)
	// Output:
	// red is RollForward revision 1
	// green is RollForward revision 2
	// blue is RollForward revision 3
	// green is Rollback revision 4
	// revision 1 has the label 5c7cfd7c59
	// revision 3 has the label 7656cfc994
	// revision 4 has the label 56b648df9f
	// the oldest one is red
	// 2 are left <nil>
}

// record is the log's part of a pass over a parent. After it, and not before, children are made from what it returns.
func record(ctx context.Context, log *history.Log, parent client.Object) (revision.Change, *history.Recorded, error) {
	selector, err := log.Selector(parent)
	if err != nil {
		return "", nil, err
	}
	entries, err := log.Claim(ctx, parent, selector)
	if err != nil {
		return "", nil, err
	}
	verdict, err := log.Resolve(ctx, parent, entries)
	if err != nil {
		return "", nil, err
	}
	relabel := func(context.Context, revision.Revision, revision.Revision) error { return nil } // no child carries a label
	recorded, err := log.Record(ctx, parent, verdict, nil, relabel)
	return verdict.Change, recorded, err
}

// settingsFormat says that revisions of ConfigMaps hold their data, in ControllerRevisions beside them.
func settingsFormat() (*history.Apps, error) {
	data, err := revision.FieldPaths(revision.Typed[corev1.ConfigMap](), revision.Path{"data"})
	if err != nil {
		return nil, err
	}
	labelsOf := func(parent client.Object) map[string]string { return map[string]string{"settings": parent.GetName()} }
	return &history.Apps{
		Parent:    corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		NewParent: func() client.Object { return &corev1.ConfigMap{} },
		Versioned: data,
		Labels:    labelsOf, // the selector has to match them
		SelectorOf: func(parent client.Object) (labels.Selector, error) {
			return labels.SelectorFromSet(labelsOf(parent)), nil
		},
		HashLabel: "controller-revision-hash",
	}, nil
}

// apiServer is the fake client, which gives objects no UIDs by itself.
func apiServer() client.Client {
	create := func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		o.SetUID(types.UID("uid-of-" + o.GetName()))
		return c.Create(ctx, o, opts...)
	}
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{Create: create}).Build()
}
