package sim

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/builder"
	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is admission that refuses: a policy, a webhook that denies or cannot be reached, a quota.

// denial says which requests of the managers are refused, and how.
type denial struct {
	resource schema.GroupVersionResource
	// verb is create, update, which patches are as well, or delete; empty is all of them.
	verb string
	// one is the end of the name, or the node, of the only child that it is about; empty is all.
	one string
	// quota refuses to create more than so many; zero is no quota.
	quota int
	// dry refuses dry runs only.
	dry  bool
	code int
	// changing makes every answer another one, as a webhook does that names the request, or a broken one its port. long is
	// as much text as some webhooks return.
	changing, long bool
	// times is how often it refuses until it lets everything be, each time that it begins; zero is always.
	times int

	// other is set when somebody else refuses: the same requests, for another reason.
	other bool
	// answers are all refusals there were, refused those since it began.
	answers, refused int
}

func (t *trouble) makeDenial(w *world) bool {
	d := &denial{
		verb: pick(t.chance, model.VerbCreate, model.VerbCreate, model.VerbCreate, model.VerbUpdate, model.VerbDelete, ""),
		code: pick(t.chance, http.StatusForbidden, http.StatusForbidden, http.StatusUnprocessableEntity,
			http.StatusInternalServerError, http.StatusBadRequest),
		changing: t.chance.IntN(2) == 0,
		long:     t.chance.IntN(4) == 0,
		dry:      w.hosts() && t.chance.IntN(6) == 0,
	}
	if d.verb == model.VerbDelete && d.code == http.StatusBadRequest {
		d.code = http.StatusConflict // which says that somebody was faster, and nobody was
	}
	children := w.childResources()
	d.resource = pick(t.chance, children...)
	k := w.kinds[t.chance.IntN(len(w.kinds))]
	switch n := t.chance.IntN(12); {
	case n < 2 && k.hasRevisions():
		d.resource = k.Check.Revisions
	case n == 2:
		d.resource = k.Check.Parents
		d.verb = model.VerbUpdate
	case n == 3 && !k.Check.Claims.Empty():
		d.resource = k.Check.Claims
	case n < 8 && d.resource == pods:
		d.one = strconv.Itoa(t.chance.IntN(3))
	default:
	}
	if t.chance.IntN(5) == 0 {
		d.times = 1 + t.chance.IntN(3)
	}
	t.denial = d
	t.aboutf("%s", d)
	return true
}

func (t *trouble) makeQuota(_ *world) bool {
	t.denial = &denial{
		resource: pods, verb: model.VerbCreate, quota: 1 + t.chance.IntN(4), code: http.StatusForbidden, changing: t.chance.IntN(2) == 0,
	}
	t.aboutf("%s", t.denial)
	return true
}

// String says it for a person.
func (d *denial) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d for %s of %s", d.code, nonEmpty(d.verb, "every write"), d.resource.Resource)
	if d.one != "" {
		fmt.Fprintf(&b, " number %s", d.one)
	}
	if d.quota > 0 {
		fmt.Fprintf(&b, " over %d", d.quota)
	}
	if d.times > 0 {
		fmt.Fprintf(&b, ", %d times", d.times)
	}
	if d.dry {
		b.WriteString(", dry runs only")
	}
	if d.changing {
		b.WriteString(", another text each time")
	}
	if d.long {
		b.WriteString(", a long text")
	}
	return b.String()
}

func nonEmpty(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// denies returns the answer to a request that is refused, nil if it is served.
func (w *world) denies(c *call) error {
	d := w.troubled().denial
	if d == nil || !c.writes() || !d.hits(w, c.request) || d.times > 0 && d.refused >= d.times {
		return nil
	}
	d.answers++
	d.refused++
	policy, quota := "policy.sim", "few"
	if d.other {
		policy, quota = otherCause+".sim", otherCause
		w.unheard(c)
	}
	text := fmt.Sprintf("admission webhook %q denied the request: %s is not allowed here", policy, c.request.Resource.Resource)
	if d.quota > 0 {
		text = fmt.Sprintf("exceeded quota: %s, used: pods=%d, limited: pods=%d", quota, len(w.all(d.resource)), d.quota)
	}
	if d.changing {
		text += fmt.Sprintf(" (request %08x)", uint32(mix(uint64(d.answers))))
	}
	if d.long {
		text += strings.Repeat("; the policy goes on to say more about it", 60)
	}
	return denied(d.code, c.request, text)
}

func denied(code int, r model.Request, text string) error {
	name := r.Name
	if name == "" && r.Object != nil {
		name = r.Object.GetName()
	}
	switch code {
	case http.StatusForbidden:
		return apierrors.NewForbidden(r.Resource.GroupResource(), name, errors.New(text)) //nolint:err113 // an API server's
	case http.StatusInternalServerError:
		return apierrors.NewInternalError(errors.New("failed calling webhook: " + text)) //nolint:err113 // an API server's
	case http.StatusBadRequest:
		return apierrors.NewBadRequest(text)
	case http.StatusConflict:
		return apierrors.NewConflict(r.Resource.GroupResource(), name, errors.New(text)) //nolint:err113 // an API server's
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: int32(code), Reason: metav1.StatusReasonInvalid, Message: text,
			Details: &metav1.StatusDetails{Name: name, Group: r.Resource.Group, Kind: r.Resource.Resource},
		}}
	}
}

func (d *denial) hits(w *world, r model.Request) bool {
	verb := r.Verb
	if verb == model.VerbPatch {
		verb = model.VerbUpdate
	}
	switch {
	case r.Resource != d.resource, d.verb != "" && d.verb != verb, d.dry && !r.DryRun:
		return false
	case d.quota > 0:
		return len(w.all(d.resource)) >= d.quota
	case d.one != "":
		return d.isOne(w, r)
	default:
		return true
	}
}

// isOne reports whether a request is about the only child that is refused.
func (d *denial) isOne(w *world, r model.Request) bool {
	o := r.Object
	if r.Verb != model.VerbCreate {
		o = w.get(r.Resource, r.Namespace, r.Name)
	}
	if pod, ok := o.(*corev1.Pod); ok && pod != nil {
		if node := nonEmpty(pod.Spec.NodeName, target(pod)); node != "" && r.Verb == model.VerbCreate {
			return strings.HasSuffix(node, "-"+d.one)
		}
	}
	if o == nil {
		return false
	}
	place := nonEmpty(o.GetAnnotations()[builder.PlaceAnnotation], o.GetName()) // the end of a name may be a hash
	return strings.HasSuffix(place, "-"+d.one)
}
