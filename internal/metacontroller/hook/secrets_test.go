package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	watchedKey = types.NamespacedName{Namespace: "hooks", Name: "token"}
	errNo      = apierrors.NewForbidden(corev1.Resource("secrets"), "token", errors.New("no such role"))
)

func secretOf(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: watchedKey.Namespace, Name: watchedKey.Name},
		Data:       map[string][]byte{"token": []byte(value)},
	}
}

// apiServer is an API server with secrets.
type apiServer struct {
	*WatchedSecrets

	t     *testing.T
	api   *fake.Clientset
	clock *clocktesting.FakeClock
	end   context.CancelFunc

	mu sync.Mutex
	// refuse are the errors of requests, by verb.
	refuse map[string]error
	// requests are those that came, as "verb fieldSelector".
	requests []string
	// open are the watches under way.
	open map[*watch.RaceFreeFakeWatcher]bool
}

func newAPIServer(t *testing.T, objects ...runtime.Object) *apiServer {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	v := &apiServer{
		t: t, api: fake.NewClientset(objects...), clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), end: end, refuse: map[string]error{},
		open: map[*watch.RaceFreeFakeWatcher]bool{},
	}
	v.api.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		err := v.request("list", a.(clienttesting.ListAction).GetListRestrictions().Fields.String())
		return err != nil, nil, err
	})
	v.api.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		if err := v.request("watch", a.(clienttesting.WatchAction).GetWatchRestrictions().Fields.String()); err != nil {
			return true, nil, err
		}
		w, err := v.api.Tracker().Watch(a.GetResource(), a.GetNamespace())
		if begun, ok := w.(*watch.RaceFreeFakeWatcher); ok {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.open[begun] = true
		}
		return true, w, err
	})
	v.WatchedSecrets = newWatchedSecrets(ctx, v.api, v.clock)
	return v
}

func (v *apiServer) request(verb, selector string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests = append(v.requests, verb+" "+selector)
	return v.refuse[verb]
}

// say changes how requests of a verb end from now on.
func (v *apiServer) say(verb string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refuse[verb] = err
}

// cut ends the watches under way, as a server does now and then.
func (v *apiServer) cut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.open {
		w.Stop()
		delete(v.open, w)
	}
}

// stopped is an error while a watch is under way.
func (v *apiServer) stopped() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.open {
		if !w.IsStopped() {
			return errors.New("a watch goes on")
		}
	}
	return nil
}

// watching is the opposite of stopped.
func (v *apiServer) watching() error {
	if v.stopped() == nil {
		return errors.New("there is no watch")
	}
	return nil
}

// says is an error unless the secret has that value.
func (v *apiServer) says(value string) error {
	s, err := v.Secret(v.t.Context(), watchedKey)
	if err == nil && string(s.Data["token"]) != value {
		return fmt.Errorf("the token is %s, not %s", s.Data["token"], value)
	}
	return err
}

// eventually waits until f returns no error.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestSecretsAreFresh(t *testing.T) {
	v := newAPIServer(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: watchedKey.Namespace, Name: watchedKey.Name}, Data: map[string]string{"ca.crt": "PEM"},
	})
	if _, err := v.Secret(t.Context(), watchedKey); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `secrets "token" not found`) {
		t.Error(err)
	}
	if m, err := v.ConfigMap(t.Context(), watchedKey); err != nil || m.Data["ca.crt"] != "PEM" {
		t.Error("a config map of the same name:", m, err)
	}
	eventually(t, func() error { // this API server tells a watch what comes after its begin, whatever was listed
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.open) != 2 {
			return fmt.Errorf("%d watches", len(v.open))
		}
		return nil
	})
	if err := v.api.Tracker().Add(secretOf("one")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return v.says("one") })
	if _, err := v.api.CoreV1().Secrets("hooks").Update(t.Context(), secretOf("two"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return v.says("two") })
	if err := v.api.CoreV1().Secrets("hooks").Delete(t.Context(), "token", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := v.says("two"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleted, and %w", err)
		}
		return nil
	})
	if _, err := v.Secret(t.Context(), types.NamespacedName{Name: "token"}); err == nil {
		t.Error("a reference without a namespace is read from all")
	}
}

// However many ask, each object is watched once, and by its name.
func TestSecretsAreWatchedByName(t *testing.T) {
	v := newAPIServer(t, secretOf("one"))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if err := v.says("one"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	eventually(t, func() error {
		v.mu.Lock()
		defer v.mu.Unlock()
		if got := strings.Join(v.requests, ", "); got != "list metadata.name=token, watch metadata.name=token" {
			return errors.New(got)
		}
		return nil
	})
}

// A missing right is said at once, whether it was missing from the start or is taken away, and counts no longer than
// that.
func TestSecretsThatMayNotBeRead(t *testing.T) {
	refused := func(v *apiServer) error {
		err := v.says("one")
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "get, list and watch") {
			return fmt.Errorf("not refused: %w", err)
		}
		return nil
	}
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb+" from the start", func(t *testing.T) {
			v := newAPIServer(t, secretOf("one"))
			v.say(verb, errNo)
			eventually(t, func() error { return refused(v) })
			v.say(verb, nil)
			eventually(t, func() error { return v.says("one") })
		})
		t.Run(verb+" later", func(t *testing.T) {
			v := newAPIServer(t, secretOf("one"))
			if err := v.says("one"); err != nil {
				t.Fatal(err)
			}
			v.say(verb, errNo)
			eventually(t, func() error { v.cut(); return refused(v) })
		})
	}
}

// What is wrong for a while is waited for, as long as the caller does; what was seen before is good enough meanwhile.
func TestSecretsOfAServerThatIsDown(t *testing.T) {
	v := newAPIServer(t, secretOf("one"))
	v.say("list", errors.New("connection refused"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	eventually(t, func() error {
		if _, err := v.Secret(ctx, watchedKey); err == nil || !strings.Contains(err.Error(), "in time: connection refused") {
			return fmt.Errorf("no cause in %w", err)
		}
		return nil
	})
	v.say("list", nil)
	if err := v.says("one"); err != nil { // this one waits
		t.Error(err)
	}
	v.say("list", errors.New("connection refused"))
	v.cut()
	if err := v.says("one"); err != nil {
		t.Error(err)
	}
}

func TestSecretsThatNobodyAsksForAreLetGoOf(t *testing.T) {
	v := newAPIServer(t, secretOf("one"))
	if err := v.says("one"); err != nil {
		t.Fatal(err)
	}
	eventually(t, v.watching)
	step := func(d time.Duration) {
		eventually(t, func() error {
			if !v.clock.HasWaiters() {
				return errors.New("nobody waits")
			}
			return nil
		})
		v.clock.Step(d)
	}
	step(idle - time.Second)
	if err := v.says("one"); err != nil {
		t.Fatal(err)
	}
	step(2 * time.Second) // it was asked for in between
	step(idle - 3*time.Second)
	if err := v.watching(); err != nil {
		t.Error("it is let go of too early:", err)
	}
	step(2 * time.Second)
	eventually(t, v.stopped)
	if err := v.says("one"); err != nil {
		t.Error("and read again:", err)
	}
	eventually(t, v.watching)
	v.end()
	eventually(t, v.stopped)
}
