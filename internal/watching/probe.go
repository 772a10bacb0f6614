package watching

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// This file finds out that a kind cannot be watched any more: its CRD was deleted, or recreated with another scope, or
// a role was revoked. While a watch runs, all is well: the API server ends it when the CRD goes, and goes on with it
// for minutes when the right to it does. But its end does not say why, and the next watch may begin although the kind
// has another scope now. So the API server is asked when a watch has ended (ended.go), for a while, and then for as
// long as something is wrong. At rest that is no request.

const (
	// probing is how often the API server is asked about a kind of which a watch has ended. A condition has to report the
	// loss within 10 seconds; one of the two verbs is checked at a time.
	probing = 4 * time.Second
	// suspicion is how long it is asked after that: each verb once or more. Discovery may know of a CRD's end later than
	// the watch.
	suspicion = 10 * time.Second
	// answering is how long all answers of one round may take. A kind without an answer by then keeps its state.
	answering = 3 * time.Second
)

// Authority says what the API server serves, and what this client may do.
type Authority interface {
	// ServerResourcesForGroupVersion lists what is served of a version, subresources included.
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	// Allowed reports whether it allows verb on all objects of a resource in a namespace, or everywhere if that is empty.
	Allowed(ctx context.Context, verb string, r schema.GroupVersionResource, namespace string) (bool, error)
}

// AuthorityOf returns the authority of the API server behind a client: what it serves, and what that client may do.
func AuthorityOf(client kubernetes.Interface) Authority { return reviewer{client.Discovery(), client} }

// AuthorityAs is the authority for another client, which only asks what it may do.
func AuthorityAs(client kubernetes.Interface, serves Authority) Authority {
	return reviewer{serves, client}
}

// reviewer asks by discovery and by reviews of access.
type reviewer struct {
	serving

	client kubernetes.Interface
}

// serving says what is served.
type serving interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

func (s reviewer) Allowed(ctx context.Context, verb string, r schema.GroupVersionResource, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: namespace,
		},
	}}
	answer, err := s.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// LostError is why a kind that was watched cannot be watched any more.
type LostError struct {
	// Forbidden says that it is served, but that the role does not allow to list or watch it. Otherwise it is no longer
	// served as it was.
	Forbidden bool

	Err error
}

func (e *LostError) Error() string { return e.Err.Error() }

func (e *LostError) Unwrap() error { return e.Err }

// errServedAnew says that a CRD was recreated with another scope. Users of the kind have to start again.
var errServedAnew = errors.New("its CRD was created again with another scope; the controller is restarted")

// ended notes that a watch of a resource has ended, or could not begin.
func (i *informers) ended(of schema.GroupVersionResource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.suspected[of] = i.clock.Now().Add(suspicion)
}

// probe asks about the kinds that may be lost until ctx ends.
func (i *informers) probe(ctx context.Context) {
	tick := i.clock.NewTicker(probing)
	defer tick.Stop()
	verbs := []string{"watch", "list"}
	for n := 0; ; n++ {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return
		}
		within, cancel := context.WithTimeout(ctx, answering)
		i.probeOnce(within, verbs[n%len(verbs)])
		cancel()
	}
}

// probeOnce asks about each of them once.
func (i *informers) probeOnce(ctx context.Context, verb string) {
	lists := map[schema.GroupVersion]*version{}
	for _, of := range i.needed() {
		at := of.key.kind.GroupVersion()
		if lists[at] == nil && !clientgoscheme.Scheme.Recognizes(of.key.kind) { // built-in kinds stay served
			list, err := i.authority.ServerResourcesForGroupVersion(at.String())
			lists[at] = &version{list, err}
		}
		known, why := lists[at].judge(of.resource)
		if known && why == nil {
			known, why = i.forbidden(ctx, verb, of.resource)
		}
		if known {
			i.found(of, verb, why) //nolint:contextcheck // the result is acted on even if the time to ask is over
		}
	}
}

// version is what the API server says of one version, nil for one that it always serves.
type version struct {
	list *metav1.APIResourceList
	err  error
}

// judge says whether it is known that a resource can still be watched, or why it cannot.
func (s *version) judge(r Resource) (known bool, why error) {
	gone := &LostError{Err: fmt.Errorf(
		"%s of %s is not served any more: install its CRD again, or change the spec; the controller starts by itself then",
		r.Resource.Resource, r.Resource.GroupVersion())}
	switch {
	case s == nil:
		return true, nil
	case apierrors.IsNotFound(s.err):
		return true, gone
	case s.err != nil:
		return false, nil //nolint:nilerr // without an answer nothing is known
	}
	for _, now := range s.list.APIResources {
		switch {
		case now.Name != r.Resource.Resource || now.Kind != r.Kind.Kind:
		case now.Namespaced != r.Namespaced:
			return true, &LostError{Err: fmt.Errorf(
				"%s of %s: %w", r.Resource.Resource, r.Resource.GroupVersion(), errServedAnew)}
		default:
			return true, nil
		}
	}
	return true, gone
}

// forbidden says whether it is known that a resource may be watched, or why it may not.
func (i *informers) forbidden(ctx context.Context, verb string, r Resource) (known bool, why error) {
	namespace := ""
	if r.Namespaced {
		namespace = i.namespace
	}
	allowed, err := i.authority.Allowed(ctx, verb, r.Resource, namespace)
	switch {
	case err != nil:
		return false, nil //nolint:nilerr // without an answer nothing is known
	case allowed:
		return true, nil
	default:
		return true, &LostError{Forbidden: true, Err: fmt.Errorf(
			"the role of %s does not let it %s %s: grant that (cairn roles prints what is needed); "+
				"the controller starts by itself then", i.account, verb, r)}
	}
}

// need is one kind that is in use.
type need struct {
	key      informerKey
	resource Resource
}

// needed returns the kinds in use, or in use until just now, of which a watch has ended or that cannot be watched: all,
// if the cache is the caller's, whose watches nobody sees.
func (i *informers) needed() []need {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.clock.Now()
	maps.DeleteFunc(i.suspected, func(_ schema.GroupVersionResource, until time.Time) bool { return now.After(until) })
	var out []need
	for key := range i.users {
		r, known := i.resources[key]
		_, suspected := i.suspected[r.Resource]
		if known && (suspected || i.foreign || i.problems[key].err != nil) {
			out = append(out, need{key, r})
		}
	}
	return out
}

// found notes why a kind cannot be watched, and calls its users. A kind that was deleted or recreated is no longer
// watched: its next CRD may be different. Of two refusals the first stays until its verb is allowed, so that a
// condition does not change with each probe.
func (i *informers) found(of need, verb string, why error) {
	lost, is := errors.AsType[*LostError](why)
	forbidden := is && lost.Forbidden
	i.mu.Lock()
	before := i.problems[of.key]
	switch {
	case forbidden && before.verb != "" && before.verb != verb:
		i.mu.Unlock()
		return
	case why == nil && (before.err == nil || before.verb != "" && before.verb != verb):
		i.mu.Unlock()
		return // nothing was wrong, or something that was not checked this time
	case why == nil:
		delete(i.problems, of.key)
		i.mu.Unlock()
		return
	}
	problem := problem{err: why}
	if forbidden {
		problem.verb = verb
	}
	if errors.Is(why, errServedAnew) {
		delete(i.problems, of.key) // what is wrong ends with the informer
		delete(i.resources, of.key)
	} else {
		i.problems[of.key] = problem
	}
	var tell []func(error)
	for _, lost := range i.users[of.key] {
		if lost != nil {
			tell = append(tell, lost)
		}
	}
	i.mu.Unlock()
	if !forbidden && before.err == nil {
		_ = i.RemoveInformer(context.Background(), of.resource.New()) // fails only for a kind that the scheme does not know
		if m, ok := i.mapper.(renewing); ok {
			m.Renew()
		}
	}
	for _, lost := range tell {
		lost(why)
	}
}

// problem is why a kind cannot be watched; verb is what is not allowed, empty if it is something else.
type problem struct {
	err  error
	verb string
}

// lossKey is the context key of the function to call when a kind cannot be watched any more.
type lossKey struct{}

// WithLoss returns a context for the GetInformer of [Server.Cache] such that lost is called when the kind cannot be
// watched any more, again and again. With nil nothing is called.
func WithLoss(ctx context.Context, lost func(error)) context.Context {
	return context.WithValue(ctx, lossKey{}, lost)
}

func lossOf(ctx context.Context) func(error) {
	lost, _ := ctx.Value(lossKey{}).(func(error))
	return lost
}
