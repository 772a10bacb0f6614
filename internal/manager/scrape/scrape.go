// Package scrape lets those read metrics whom the API server lets: TLS, a TokenReview for who it is and a
// SubjectAccessReview for whether it may get the path, as controller-runtime's metrics/filters asks for them. That
// package would do; with it come CEL, OpenTelemetry and gRPC, 12 MB of memory in each manager.
//
// What may not come in: another way to be let in, and what is served.
package scrape

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// allowedFor and deniedFor are how long an answer holds: rights that are taken away end within a minute.
	allowedFor, deniedFor = time.Minute, 10 * time.Second
	// timeout bounds both requests together.
	timeout = 10 * time.Second
	// asking is how many callers whom it does not know it asks about at a time, remembered how many answers it keeps:
	// whoever sends made-up tokens costs no more than that.
	asking, remembered = 4, 256
)

// Guard lets requests through to a handler. Make one with [New].
type Guard struct {
	tokens authenticationclient.TokenReviewInterface
	access authorizationclient.SubjectAccessReviewInterface
	slots  chan struct{}
	// answers are statuses by question.
	answers *cache.LRUExpireCache
}

// question is a token and what it is for. Of the token only a digest is kept in memory.
type question struct {
	token        [sha256.Size]byte
	method, path string
}

// New returns a guard that asks the API server of cfg, which has to let that identity create tokenreviews and
// subjectaccessreviews.
func New(cfg *rest.Config, c clock.PassiveClock) (*Guard, error) {
	tokens, err := authenticationclient.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newGuard(tokens.TokenReviews(), access.SubjectAccessReviews(), c), nil
}

func newGuard(
	tokens authenticationclient.TokenReviewInterface, access authorizationclient.SubjectAccessReviewInterface, c clock.PassiveClock,
) *Guard {
	return &Guard{
		tokens: tokens, access: access, slots: make(chan struct{}, asking), answers: cache.NewLRUExpireCacheWithClock(remembered, c),
	}
}

// Handler is next for those who may get the path of a request. The others get 401 without a valid token, 403 without
// the right to it, and 503 if the API server cannot be asked.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		scheme, token, _ := strings.Cut(req.Header.Get("Authorization"), " ")
		if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		if status := g.status(req, token); status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// status is [http.StatusOK] if a request may be answered.
func (g *Guard) status(req *http.Request, token string) int {
	q := question{sha256.Sum256([]byte(token)), strings.ToLower(req.Method), req.URL.Path}
	if known, ok := g.known(q); ok {
		return known
	}
	ctx, cancel := context.WithTimeout(req.Context(), timeout)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable
	}
	if known, ok := g.known(q); ok { // by somebody who was before it
		return known
	}
	status := g.ask(ctx, q, token)
	g.remember(q, status)
	return status
}

// ask asks the API server.
func (g *Guard) ask(ctx context.Context, q question, token string) int {
	who, err := g.tokens.Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusServiceUnavailable
	case !who.Status.Authenticated:
		return http.StatusUnauthorized
	}
	user := who.Status.User
	extra := make(map[string]authorization.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorization.ExtraValue(values)
	}
	may, err := g.access.Create(ctx, &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorization.NonResourceAttributes{Verb: q.method, Path: q.path},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return http.StatusServiceUnavailable
	case !may.Status.Allowed || may.Status.Denied:
		return http.StatusForbidden
	default:
		return http.StatusOK
	}
}

func (g *Guard) known(q question) (status int, ok bool) {
	known, _ := g.answers.Get(q)
	status, ok = known.(int)
	return status, ok
}

// remember keeps what the API server has said; that it could not be asked is not kept.
func (g *Guard) remember(q question, status int) {
	switch status {
	case http.StatusServiceUnavailable:
	case http.StatusOK:
		g.answers.Add(q, status, allowedFor)
	default:
		g.answers.Add(q, status, deniedFor)
	}
}
