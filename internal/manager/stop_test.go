package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// starting is a manager whose Start does what it is told.
type starting struct {
	ctrl.Manager

	start func(ctx context.Context) error
}

func (s starting) Start(ctx context.Context) error { return s.start(ctx) }

// TestStart: a manager that is stopped ends, also if controller-runtime's never does, as when its caches are not filled
// yet; and not before one that is writing has had its time.
func TestStart(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		start func(context.Context) error
		want  error
		after time.Duration
	}{
		"it ends by itself": {func(context.Context) error { return broken }, broken, 0},
		"it is stopped":     {func(ctx context.Context) error { <-ctx.Done(); <-time.After(drain); return nil }, nil, time.Second + drain},
		"it ends badly":     {func(ctx context.Context) error { <-ctx.Done(); return broken }, broken, time.Second},
		"it never ends":     {func(context.Context) error { <-time.After(time.Hour); return broken }, nil, time.Second + drain + slack},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				began := time.Now()
				if err := start(ctx, starting{start: c.start}); !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("it took %s, want %s", took, c.after)
				}
				<-time.After(time.Hour) // the bubble waits for all
			})
		})
	}
}

// TestStopBeforeTheCachesAreFilled: a manager that is stopped while the API server does not answer its first list ends,
// and leaves nothing behind that keeps a processor busy.
func TestStopBeforeTheCachesAreFilled(t *testing.T) {
	listed := make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{
			"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
			"/apis":   `{"kind":"APIGroupList","apiVersion":"v1"}`,
			"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod","namespaced":true}]}`,
		}[r.URL.Path]
		if answer == "" {
			listed <- struct{}{}
			<-r.Context().Done()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	defer s.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	mgr, _, err := Options{Config: &rest.Config{Host: s.URL}}.withDefaults().bare(ctx, clientgoscheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	<-listed
	stop()
	select {
	case err := <-ended:
		if err := unlessStopped(ctx, err); err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it has not ended")
	}
}
