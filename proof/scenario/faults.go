package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/fault"
)

// This file holds what goes wrong between a manager and the API server.

var faultVerbs = map[string]verb{
	"lose":     {"lose request|response of " + requests + " [unseen=true]", readLose},
	"crash":    {"crash before|after " + requests + " [stale=true]", readCrash},
	"conflict": {"conflict on " + requests, failing(fault.Conflict)},
	"throttle": {"throttle " + requests, failing(fault.Throttled)},
	"reject":   {"reject " + requests, failing(fault.Rejected)},
	"fail":     {"fail " + requests, failing(fault.ServerError)},
	"hang":     {"hang " + requests, failing(fault.Hang)},
	"forbid":   {"forbid " + requests + " [status=CODE]", readForbid},
	"allow":    {"allow VERB KIND[/SUBRESOURCE] [manager=NUMBER]", readAllow},
	"hold":     {"hold KIND [manager=NUMBER]", watching(Hold)},
	"release":  {"release KIND [manager=NUMBER]", watching(Release)},
	"cut":      {"cut KIND [manager=NUMBER]", watching(Cut)},
	"rewind":   {"rewind KIND to MOMENT [manager=NUMBER]", readRewind},
}

// requests is how a script says which requests it means.
const requests = "VERB KIND[/SUBRESOURCE] [NUMBER] [times=NUMBER] [manager=NUMBER]"

func readLose(r *reader) action {
	mode := fault.ResponseLost
	switch {
	case r.is("request"):
		mode = fault.RequestLost
	case r.is("response"):
	default:
		r.failf("what is lost is missing")
	}
	if r.flag("unseen") {
		if mode != fault.ResponseLost {
			r.failf("unseen is for a response that is lost")
		}
		mode = fault.Unseen
	}
	return failing(mode)(r)
}

func readCrash(r *reader) action {
	mode := fault.KillAfter
	switch {
	case r.is("before"):
		mode = fault.KillBefore
	case r.is("after"):
	default:
		r.failf("before or after is missing")
	}
	if r.flag("stale") {
		if mode != fault.KillAfter {
			r.failf("stale is for a crash after a request")
		}
		mode = fault.KillStale
	}
	return failing(mode)(r)
}

// flag takes an option that is true or false.
func (r *reader) flag(key string) bool {
	value, ok := r.option(key)
	if ok && value != "true" && value != "false" {
		r.failf("%s=%s is neither true nor false", key, value)
	}
	return value == "true"
}

// failing reads a verb that makes single requests fail.
func failing(mode fault.Mode) func(*reader) action {
	return func(r *reader) action {
		r.is("of", "on")
		f := r.request()
		f.Do, f.Mode = Fail, mode
		return inject(f)
	}
}

func inject(f FaultSpec) action {
	return func(ctx context.Context, p *Player) error { return p.stage.Fault(ctx, f) }
}

// request reads which requests are meant.
func (r *reader) request() FaultSpec {
	f := FaultSpec{Verb: r.word("a verb of requests"), Nth: 1}
	if verbs := []string{"create", "update", "patch", "delete", fault.Any}; r.err == nil && !slices.Contains(verbs, f.Verb) {
		r.failf("%q is no verb of requests; there are: %s", f.Verb, strings.Join(verbs, ", "))
	}
	f.Resource, f.Subresource = r.resource()
	if n, ok := r.number(); ok {
		if f.Nth = n; n < 1 {
			r.failf("the first request has number 1")
		}
	}
	f.Times, f.Manager = r.numeric("times", 0), r.numeric("manager", 0)
	return f
}

// resource reads a kind, and a subresource after a slash.
func (r *reader) resource() (schema.GroupResource, string) {
	word := r.word("a kind")
	word, sub, _ := strings.Cut(word, "/")
	k, ok := kindNamed(word)
	if !ok {
		r.failf("%q is no kind; there are: %s, and resource.group for others", word, strings.Join(kindWords(), ", "))
	}
	return k.group(), sub
}

func readForbid(r *reader) action {
	f := r.request()
	f.Do, f.Status = Refuse, r.numeric("status", http.StatusForbidden)
	if r.err == nil && (f.Status < 400 || f.Status > 599) {
		r.failf("status=%d is no refusal", f.Status)
	}
	return inject(f)
}

func readAllow(r *reader) action {
	f := FaultSpec{Do: Allow, Verb: r.word("a verb of requests")}
	f.Resource, f.Subresource = r.resource()
	f.Manager = r.numeric("manager", 0)
	return inject(f)
}

func watching(do FaultAction) func(*reader) action {
	return func(r *reader) action {
		f := FaultSpec{Do: do}
		f.Resource, _ = r.resource()
		f.Manager = r.numeric("manager", 0)
		return inject(f)
	}
}

func readRewind(r *reader) action {
	f := FaultSpec{Do: Rewind}
	f.Resource, _ = r.resource()
	r.must("to")
	name := r.word("a moment")
	f.Manager = r.numeric("manager", 0)
	return func(ctx context.Context, p *Player) error {
		m, err := p.moment(name)
		if err != nil {
			return err
		}
		if m.resourceVersion == "" {
			return fmt.Errorf("nobody said which resource version there was at %s", name)
		}
		f := f
		f.ResourceVersion = m.resourceVersion
		return p.stage.Fault(ctx, f)
	}
}
