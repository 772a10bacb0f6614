package follow

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/status"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/fakeserver"
)

// set returns a ReplicaSet that has so many of its three pods.
func set(ready int32) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web-uid"},
		Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(3))},
		Status:     appsv1.ReplicaSetStatus{Replicas: 3, FullyLabeledReplicas: 3, ReadyReplicas: ready, AvailableReplicas: ready},
	}
}

// watched follows an object that looks change at each look, and returns what is printed.
func watched(t *testing.T, ctx context.Context, o Options, looks ...func(client.WithWatch) error) (out, errOut string, err error) { //nolint:revive // t first
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a watch that does not end fails as interrupted
	defer cancel()
	n := 0
	b := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(set(0)).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if n < len(looks) {
				n++
				if err := looks[n-1](c); err != nil {
					return err
				}
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	i := inspect.New(fakeserver.EventsByObject(b).Build())
	var stdout, stderr bytes.Buffer
	e := env.New(genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr}, "test")
	o.Every = time.Millisecond
	err = Rollout(ctx, e, i, set(0), o)
	return stdout.String(), stderr.String(), err
}

func become(ready int32) func(client.WithWatch) error {
	return func(c client.WithWatch) error { return c.Status().Update(context.Background(), set(ready)) }
}

func nothing(client.WithWatch) error { return nil }

// wide is a character that takes two columns.
const wide = "\u8a9e"

// TestLines: in a pipe there is a line for each change, and none for a look that shows what the one before showed. A
// server that is busy is asked again.
func TestLines(t *testing.T) {
	busy := func(client.WithWatch) error { return apierrors.NewTooManyRequests("later", 1) }
	looks := []func(client.WithWatch) error{nothing, nothing, busy, become(2), nothing, become(3)}
	out, errOut, err := watched(t, t.Context(), Options{}, looks...)
	want := `replicaset.apps/web is in progress: Available: 0/3
replicaset.apps/web is in progress: Available: 2/3
replicaset.apps/web is done: ReplicaSet is available. Replicas: 3
`
	if err != nil || out != want || errOut != "" {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
}

// TestEnds: the exit code says why the watch ended.
func TestEnds(t *testing.T) {
	failed := func(c client.WithWatch) error {
		s := set(0)
		s.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: "Stalled", Status: corev1.ConditionTrue, Reason: "NoWay", Message: "ever"}}
		return c.Status().Update(context.Background(), s)
	}
	deleted := func(c client.WithWatch) error { return c.Delete(context.Background(), set(0)) }
	interrupted, interrupt := context.WithCancel(t.Context())
	for name, c := range map[string]struct {
		ctx     context.Context
		timeout time.Duration
		look    func(client.WithWatch) error
		code    int
		says    string
	}{
		"failed":      {t.Context(), 0, failed, env.Broken, "has failed: NoWay: ever"},
		"timeout":     {t.Context(), 2 * time.Second, nothing, env.TimedOut, "timed out after 2s: replicaset.apps/web is in progress: Available: 0/3"},
		"interrupted": {interrupted, time.Hour, func(client.WithWatch) error { interrupt(); return nil }, env.Interrupted, ""},
		"deleted":     {t.Context(), 0, deleted, env.Failed, ""},
		"refused":     {t.Context(), 0, func(client.WithWatch) error { return errors.New("no") }, env.Failed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := watched(t, c.ctx, Options{Timeout: c.timeout}, nothing, c.look)
			if env.Code(err) != c.code || !strings.Contains(out+errOut, c.says) {
				t.Errorf("%v\n%s%s", err, out, errOut)
			}
		})
	}
}

// TestRedraw: on a terminal the view is drawn over the one before, without a line that wraps or is lost at the top.
func TestRedraw(t *testing.T) {
	var screen bytes.Buffer
	p := &printer{terminal: &env.Terminal{W: &screen, Colours: true, Size: func() (int, int) { return 40, 5 }}}
	long := strings.Repeat(wide, 30) + "\x1b[2J"
	p.view = func(w io.Writer, s *status.Status) error {
		_, err := io.WriteString(w, s.Headline()+"\n"+long+"\n3\n4\n5\n6\n")
		return err
	}
	s := &status.Status{State: status.InProgress, Reason: "why"}
	for range 2 {
		if _, err := p.show(s); err != nil {
			t.Fatal(err)
		}
	}
	view := "/ \x1b[33mis in progress\x1b[0m: why\n" + strings.Repeat(wide, 19) + "…\n3\n…\n"
	if want := view + "\x1b[4A\r\x1b[J" + view; screen.String() != want {
		t.Errorf("got\n%q\nwant\n%q", screen.String(), want)
	}
}

// TestPassingWarnings: what is warned of at one look, and over at the next, is no news: of what stays it is, and at the
// end.
func TestPassingWarnings(t *testing.T) {
	var warned []string
	p := &printer{lines: io.Discard, warned: map[string]bool{}, warn: func(s ...string) { warned = append(warned, s...) }}
	looks := []*status.Status{
		{State: status.InProgress, Warnings: []string{"not seen yet", "odd"}},
		{State: status.InProgress, Warnings: []string{"odd"}},
		{State: status.InProgress, Warnings: []string{"odd"}},
		{State: status.Done, Warnings: []string{"odd", "late"}},
	}
	for _, s := range looks {
		if _, err := p.show(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(warned, ", "); got != "odd, late" {
		t.Errorf("warned of %s", got)
	}
}
