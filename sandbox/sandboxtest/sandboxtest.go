// Package sandboxtest shares one sandbox between the tests of a test binary and gives each test a namespace.
//
//	func TestMain(m *testing.M) { os.Exit(sandboxtest.Main(m, sandbox.Options{})) }
//
//	func TestSomething(t *testing.T) {
//		s := sandboxtest.Get(t)
//		namespace := sandboxtest.Namespace(t, s)
//		...
//	}
//
// The sandbox starts when the first test asks for it, so a run that selects none of those tests does not pay for it. It
// is stopped after the last test, and what it left behind fails the run.
//
// The environment variable CAIRN_SANDBOX_LOG names a file to which the components log. Without it the logs are dropped
// with the sandbox.
package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/sandbox"
)

// LogVariable is the environment variable that names the file for the components' logs.
const LogVariable = "CAIRN_SANDBOX_LOG"

// BinariesVariable is the environment variable that names the directory of Options.Binaries: the tests then run against
// another version of Kubernetes.
const BinariesVariable = "CAIRN_SANDBOX_BINARIES"

// pollInterval is the pause between two looks.
const pollInterval = 5 * time.Millisecond

// leakPatience is how long goroutines may take to end after Stop.
const leakPatience = 20 * time.Second

// patience is how long the API server may take to make a namespace, or to empty it, while other tests keep it busy.
const patience = time.Minute

// shared is the binary's sandbox.
var shared struct {
	start   func() (*sandbox.Sandbox, error) // starts it, the first time
	started *sandbox.Sandbox                 // nil when no test asked for it; read it after the last test only
}

// Main runs the tests of m and returns the exit code for os.Exit. The tests get a sandbox with the given options from
// Get. An interrupt (Ctrl-C, SIGTERM) stops the sandbox before it ends the process.
func Main(m *testing.M, o sandbox.Options) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if path := os.Getenv(LogVariable); path != "" && o.Log == nil {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // whoever runs the tests may choose
		if err != nil {
			fmt.Fprintf(os.Stderr, "sandboxtest: %s: %v\n", LogVariable, err)
			return 1
		}
		defer func() { _ = f.Close() }()
		o.Log = f
	}
	if o.Binaries == "" {
		o.Binaries = os.Getenv(BinariesVariable)
	}
	shared.start = sync.OnceValues(func() (*sandbox.Sandbox, error) {
		s, err := sandbox.Start(ctx, o)
		shared.started = s
		return s, err
	})
	interrupted := context.AfterFunc(ctx, func() {
		// If a start is under way this waits for its end. If there was none, it fails before it has done anything much.
		if s, err := shared.start(); err == nil {
			<-s.Done()
		}
		os.Exit(1) //nolint:revive // what a signal does, after the sandbox is gone
	})

	code := m.Run()
	if !interrupted() {
		select {} // the sandbox is being stopped, and the process ends then
	}
	if s := shared.started; s != nil {
		if err := s.Err(); err != nil {
			fmt.Fprintf(os.Stderr, "sandboxtest: the sandbox failed during the tests: %v\n", err)
			code = max(code, 1)
		}
		if err := s.Stop(context.Background()); err != nil {
			fmt.Fprintf(os.Stderr, "sandboxtest: stop: %v\n", err)
			code = max(code, 1)
		}
		if leaks := Leaks(); leaks != "" {
			fmt.Fprintf(os.Stderr, "sandboxtest: goroutines that outlived the sandbox:\n%s\n", leaks)
			code = max(code, 1)
		}
	}
	return code
}

// Get returns the binary's sandbox, and starts it when it is the first to ask. The test fails when the sandbox does not
// start or has failed since.
func Get(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	if shared.start == nil {
		t.Fatal("sandboxtest.Get needs a TestMain that calls sandboxtest.Main")
	}
	s, err := shared.start()
	if err != nil {
		t.Fatalf("start the sandbox: %v", err)
	}
	if err := s.Err(); err != nil {
		t.Fatalf("the sandbox failed: %v", err)
	}
	return s
}

// Namespace creates a namespace for the test, with a default service account, so that pods can be created in it at
// once, and returns its name. When the test ends the namespace is deleted, and its pods with grace period 0, but not
// waited for.
func Namespace(t testing.TB, s *sandbox.Sandbox) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ns, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "test-",
		Annotations:  map[string]string{"sandbox.cairn.dev/test": t.Name()},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context is over.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", ns.Name, err)
		}
		// From here on nothing can be created in it. A pod that is stuck on purpose would keep it.
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		var refused error // by a policy of the test, of whose end the API server has not heard yet
		err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
			refused = client.CoreV1().Pods(ns.Name).DeleteCollection(ctx, now, metav1.ListOptions{})
			return refused == nil, nil
		})
		if err != nil {
			t.Errorf("delete the pods of namespace %s: %v", ns.Name, errors.Join(err, refused))
		}
	})
	err = wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts(ns.Name).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, ignoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("wait for the default service account of namespace %s: %v", ns.Name, err)
	}
	return ns.Name
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Leaks returns the stacks of the goroutines that run cairn's code or were started by it, except the caller's and those
// of running tests, or "" when there are none. It waits a little for goroutines to end.
func Leaks() string {
	var leaks []string
	ctx, cancel := context.WithTimeout(context.Background(), leakPatience)
	defer cancel()
	_ = wait.PollUntilContextCancel(ctx, pollInterval, true, func(context.Context) (bool, error) {
		leaks = slices.DeleteFunc(otherGoroutines(), func(stack string) bool {
			return !strings.Contains(stack, "github.com/cairn-dev/cairn/") ||
				strings.Contains(stack, "testing.tRunner(") || strings.Contains(stack, "sandboxtest.Main(")
		})
		return len(leaks) == 0, nil
	})
	return strings.Join(leaks, "\n\n")
}

// otherGoroutines returns the stacks of all goroutines but the caller's.
func otherGoroutines() []string {
	for size := 1 << 20; ; size *= 2 {
		buffer := make([]byte, size)
		if n := runtime.Stack(buffer, true); n < size {
			return strings.Split(string(buffer[:n]), "\n\n")[1:] // the caller's comes first
		}
	}
}
