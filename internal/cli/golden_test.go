package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/cli"
	"github.com/cairn-dev/cairn/internal/cli/diff"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/fakeserver"
)

// worlds are the clusters of the golden files, by the name of the file. The commands of a file run one after the other
// in one world.
var worlds = map[string]func() []client.Object{
	"plain": func() []client.Object {
		ds := daemonSet("web:2")
		first, second := stored(ds, 1, "6fbc8", template("web:1")), stored(ds, 2, "77d5c", template("web:2"))
		first.Annotations = map[string]string{inspect.ChangeCauseAnnotation: "launch day"}
		return []client.Object{ds, first, second, pod("a", "6fbc8"), pod("b", "77d5c"), pod("c", "77d5c")}
	},
	// What can be wrong with a log, and an old revision that may do more than the spec.
	"odd": func() []client.Object {
		ds := daemonSet("web:4")
		ds.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
		root := template("registry.example/web:1")
		root.Spec.HostNetwork = true
		root.Spec.ServiceAccountName = "root"
		root.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		unreadable := stored(ds, 4, "5c8dd", template(""))
		unreadable.Data.Raw = []byte(`{"spec":7}`)
		return []client.Object{
			ds, stored(ds, 2, "6fbc8", root), stored(ds, 3, "77d5c", template("web:2")), stored(ds, 3, "9b6f4", template("web:3")), unreadable,
			pod("a", "gone"),
		}
	},
	// Texts that a terminal would obey, or that YAML does not take.
	"hostile": func() []client.Object {
		hostile := func(image string) corev1.PodTemplateSpec {
			t := template(image)
			t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "KEYS", Value: "del\x7f c1\u009b2J turned\u202eexe.txt"}}
			return t
		}
		ds := daemonSet("web:2")
		ds.Spec.Template = hostile("web:2")
		first := stored(ds, 1, "6fbc8", hostile("web:1"))
		first.Annotations = map[string]string{inspect.ChangeCauseAnnotation: "clear\x1b[2J ring\a turned\u202eexe.txt"}
		return []client.Object{ds, first, stored(ds, 2, "77d5c", hostile("web:2"))}
	},
	// An undo leaves the annotation that says why the revision was made that it went away from.
	"undone": func() []client.Object {
		ds := daemonSet("web:1")
		ds.Annotations = map[string]string{inspect.ChangeCauseAnnotation: "upgrade to web 2"}
		second := stored(ds, 2, "77d5c", template("web:2"))
		second.Annotations = ds.Annotations
		return []client.Object{ds, second, stored(ds, 3, "6fbc8", template("web:1"))}
	},
	// Somebody planted a revision, and there are secrets.
	"planted": func() []client.Object {
		secretive := func(image, password string) corev1.PodTemplateSpec {
			t := template(image)
			t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DB_PASSWORD", Value: password}, {Name: "COLOR", Value: "red"}, {Name: "API_TOKEN", Value: "same"}}
			return t
		}
		ds := daemonSet("web:2")
		ds.Spec.Template = secretive("web:2", "new")
		ds.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		planted := stored(ds, 2, "77d5c", secretive("evil:1", "old"))
		planted.Name = "web-innocent"
		return []client.Object{ds, stored(ds, 1, "6fbc8", secretive("web:1", "old")), planted, stored(ds, 3, "9b6f4", ds.Spec.Template)}
	},
	"terminating": func() []client.Object {
		ds := daemonSet("web:2")
		ds.DeletionTimestamp, ds.Finalizers = &metav1.Time{Time: now}, []string{"foregroundDeletion", "example.com/backup"}
		return []client.Object{ds, stored(ds, 1, "6fbc8", template("web:1")), stored(ds, 2, "77d5c", template("web:2"))}
	},
	"empty":     func() []client.Object { return []client.Object{daemonSet("web:1")} },
	"kinds":     kinds,
	"rollout":   rollout,
	"settled":   settled,
	"composite": composites,
}

var now = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

// TestGolden runs every command of every golden file and compares what it prints. Lines of the error stream are marked
// with "! ". Run it with -update after a change, and read the difference.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) != len(worlds) {
		t.Fatalf("%d files for %d worlds, %v", len(files), len(worlds), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(string(want), server(worlds[name]()))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("go test ./internal/cli -run TestGolden -update writes this:\n%s", d)
			}
		})
	}
}

// replay runs the lines of a transcript that begin with "$ cairn".
func replay(transcript string, c client.Client) string {
	var out bytes.Buffer
	for line := range strings.Lines(transcript) {
		if strings.HasPrefix(line, "# ") {
			out.WriteString(line)
		}
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ cairn ")
		if !ok {
			continue
		}
		fmt.Fprintf(&out, "$ cairn %s\n", command)
		var stdout, stderr bytes.Buffer
		err := execute(c, strings.Fields(command), &stdout, &stderr)
		for warning := range strings.Lines(stderr.String()) {
			out.WriteString("! " + warning)
		}
		out.Write(stdout.Bytes())
		fmt.Fprintf(&out, "=> %d\n\n", env.Code(err))
	}
	return out.String()
}

func execute(c client.Client, args []string, stdout, stderr *bytes.Buffer) error {
	return run(environment(c, stdout, stderr), args)
}

// environment is that of a command in a world.
func environment(c client.Client, stdout, stderr *bytes.Buffer) *env.Env {
	e := env.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: stdout, ErrOut: stderr}, "v0")
	e.Clock = testingclock.NewFakePassiveClock(now)
	e.Objects = func(args []string, _ *env.Selection) (*inspect.Inspector, []client.Object, error) {
		kind, name, _ := strings.Cut(strings.Join(args, "/"), "/")
		o, ok := shortNames[kind]
		if !ok {
			return nil, nil, fmt.Errorf("this world has no %s", kind)
		}
		if name == "" {
			return all(c, o)
		}
		o = o.DeepCopyObject().(client.Object)
		key := client.ObjectKey{Namespace: "shop", Name: name}
		if namespaced, err := c.IsObjectNamespaced(o); err == nil && !namespaced {
			key.Namespace = ""
		}
		if err := c.Get(context.Background(), key, o); err != nil {
			return nil, nil, err
		}
		return inspect.New(c), []client.Object{o}, nil
	}
	e.Connect = func() (*inspect.Inspector, string, error) { return inspect.New(c), "shop", nil }
	e.Kinds = func(bool) ([]schema.GroupVersionKind, error) {
		return []schema.GroupVersionKind{
			corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
		}, nil
	}
	e.Resources = func() ([]string, error) {
		return []string{"configmaps", "daemonsets", "deployments", "statefulsets"}, nil
	}
	e.Names = func(_ context.Context, resource string) ([]string, error) {
		return map[string][]string{"sts": {"db", "dbs", "other"}, "statefulsets": {"db"}}[resource], nil
	}
	return e
}

func run(e *env.Env, args []string) error {
	root := cli.NewRoot(e)
	root.SetArgs(diff.Arguments(args))
	err := root.ExecuteContext(context.Background())
	if err != nil {
		env.Report(e.ErrOut, err)
	}
	return err
}

// server returns a client of an API server that holds those objects.
func server(objects []client.Object) client.Client {
	builder := func() *fake.ClientBuilder {
		return fakeserver.EventsByObject(fake.NewClientBuilder().WithScheme(scheme()).WithRESTMapper(mapper()))
	}
	return builder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		// An API server answers a dry run with what would be; the fake client answers with nothing at all.
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			var po client.PatchOptions
			if po.ApplyOptions(opts); len(po.DryRun) == 0 {
				return c.Patch(ctx, o, p, opts...)
			}
			live := o.DeepCopyObject().(client.Object)
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
				return err
			}
			return builder().WithObjects(live).Build().Patch(ctx, o, p)
		},
	}).Build()
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: image}}},
	}
}

func daemonSet(image string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "0f6e", Generation: 4},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template(image),
		},
	}
}

func owner() []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(daemonSet(""), appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
}

func stored(ds *appsv1.DaemonSet, number int64, hash string, t corev1.PodTemplateSpec) *appsv1.ControllerRevision {
	ds = ds.DeepCopy()
	ds.Spec.Template = t
	data, err := runtime.Encode(clientgoscheme.Codecs.LegacyCodec(appsv1.SchemeGroupVersion), ds)
	if err != nil {
		panic(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ds.Namespace, Name: ds.Name + "-" + hash, UID: types.UID(hash), OwnerReferences: owner(),
			CreationTimestamp: metav1.NewTime(now.Add(-time.Duration(10-number) * 7 * time.Hour)),
			Labels:            map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: hash},
		},
		Revision: number,
		Data:     runtime.RawExtension{Raw: data},
	}
}

func pod(name, hash string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, OwnerReferences: owner(),
		Labels: map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: hash},
	}}
}

// TestAQuestionBeforeAnUndo: it says where, what is replaced, and how to take it back; and anything but yes is no.
func TestAQuestionBeforeAnUndo(t *testing.T) {
	for answer, want := range map[string]struct {
		code int
		last string
	}{"n\n": {env.Failed, "Nothing was changed.\n"}, "yes\n": {env.OK, ""}} {
		c := server(worlds["plain"]())
		var stdout, stderr bytes.Buffer
		e := environment(c, &stdout, &stderr)
		e.In = strings.NewReader(answer)
		e.Interactive = func() bool { return true }
		e.Where = func() string { return "context kind-shop, cluster https://127.0.0.1:6443, namespace shop" }
		err := run(e, []string{"undo", "ds/web"})
		said := stderr.String()
		if env.Code(err) != want.code || !strings.HasSuffix(said, want.last) || !strings.Contains(said, "-      - image: web:2") {
			t.Errorf("%q: %v\n%s", answer, err, said)
		}
		for _, text := range []string{
			"In context kind-shop, cluster https://127.0.0.1:6443, namespace shop. 2 pods are of another revision, and will be replaced. " +
				"To take it back: cairn undo daemonset.apps/web --to-revision 2\n",
			"Bring daemonset.apps/web back to revision 1 (web-6fbc8)? [y/N] ",
		} {
			if !strings.Contains(said, text) {
				t.Errorf("it does not say %q:\n%s", text, said)
			}
		}
	}
}

// all returns the objects of a type.
func all(c client.Client, of client.Object) (*inspect.Inspector, []client.Object, error) {
	gvk, err := c.GroupVersionKindFor(of)
	if err != nil {
		return nil, nil, err
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = c.List(context.Background(), &list, client.InNamespace("shop"))
	var out []client.Object
	for n := range list.Items {
		out = append(out, &list.Items[n])
	}
	return inspect.New(c), out, err
}
