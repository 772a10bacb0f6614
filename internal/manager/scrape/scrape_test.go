package scrape

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

// server is an API server that knows three tokens: of one who may get /metrics, of one who may not, and one about which
// it fails.
type server struct {
	*Guard

	clock *testingclock.FakeClock
	asked int
}

func newServer() *server {
	s := &server{clock: testingclock.NewFakeClock(time.Unix(1000, 0))}
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		s.asked++
		review := a.(clienttesting.CreateAction).GetObject().(*authentication.TokenReview).DeepCopy()
		switch token := review.Spec.Token; token {
		case "broken":
			return true, nil, errors.New("no answer")
		case "prometheus", "nobody":
			review.Status = authentication.TokenReviewStatus{Authenticated: true, User: authentication.UserInfo{Username: token}}
		}
		return true, review, nil
	})
	client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorization.SubjectAccessReview).DeepCopy()
		to := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && to.Verb == "get" && to.Path == "/metrics"
		return true, review, nil
	})
	s.Guard = newGuard(client.AuthenticationV1().TokenReviews(), client.AuthorizationV1().SubjectAccessReviews(), s.clock)
	return s
}

// get returns the status of a request with an Authorization header.
func (s *server) get(t *testing.T, method, path, header string) int {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	req.Header.Set("Authorization", header)
	got := httptest.NewRecorder()
	s.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(got, req)
	return got.Code
}

func TestGuard(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, header string
		want                 int
	}{
		"who may":              {http.MethodGet, "/metrics", "Bearer prometheus", http.StatusOK},
		"in another spelling":  {http.MethodGet, "/metrics", "bearer  prometheus", http.StatusOK},
		"who may not":          {http.MethodGet, "/metrics", "Bearer nobody", http.StatusForbidden},
		"to write":             {http.MethodPost, "/metrics", "Bearer prometheus", http.StatusForbidden},
		"another path":         {http.MethodGet, "/secrets", "Bearer prometheus", http.StatusForbidden},
		"an unknown token":     {http.MethodGet, "/metrics", "Bearer made-up", http.StatusUnauthorized},
		"without one":          {http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		"an empty one":         {http.MethodGet, "/metrics", "Bearer ", http.StatusUnauthorized},
		"a password":           {http.MethodGet, "/metrics", "Basic prometheus", http.StatusUnauthorized},
		"nobody can be asked":  {http.MethodGet, "/metrics", "Bearer broken", http.StatusServiceUnavailable},
		"only the first token": {http.MethodGet, "/metrics", "Bearer nobody prometheus", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newServer().get(t, c.method, c.path, c.header); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}

// TestAnswersHold: an answer holds for a time, a failure to get one does not, and no more are kept than that.
func TestAnswersHold(t *testing.T) {
	s := newServer()
	ask := func(token string, want int) {
		t.Helper()
		if s.get(t, http.MethodGet, "/metrics", "Bearer "+token); s.asked != want {
			t.Errorf("%s: asked %d times, want %d", token, s.asked, want)
		}
	}
	ask("prometheus", 1)
	ask("prometheus", 1)
	ask("nobody", 2)
	s.clock.Step(30 * time.Second)
	ask("prometheus", 2)
	ask("nobody", 3)
	s.clock.Step(31 * time.Second)
	ask("prometheus", 4)
	ask("broken", 5)
	ask("broken", 6)
	for n := range 3 * remembered {
		s.get(t, http.MethodGet, "/metrics", "Bearer "+strconv.Itoa(n))
	}
	if kept := len(s.answers.Keys()); kept > remembered {
		t.Errorf("%d answers are kept", kept)
	}
}
