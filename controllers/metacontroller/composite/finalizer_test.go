package composite

// Parents that are being deleted.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

const somebodyElses = "example.com/somebody-elses"

// deleted deletes tom, whom somebody else's finalizer holds.
func (p *passes) deleted() {
	p.t.Helper()
	tom := p.tom()
	tom.SetFinalizers(append(tom.GetFinalizers(), somebodyElses))
	must(p.t, p.Raw.Update(context.Background(), tom))
	must(p.t, p.Raw.Delete(context.Background(), tom))
}

// phase is what the hooks of these tests say of tom.
func (p *passes) phase() string {
	p.t.Helper()
	phase, _, _ := unstructured.NestedString(p.tom().Object, "status", "phase")
	return phase
}

// saysPhase answers as wantsPods does, and the phase of the parent.
func saysPhase(phase func(q *hook.Question) string) func(q *hook.Question) string {
	return func(q *hook.Question) string {
		return strings.Replace(wantsPods(q), `"wants"`, fmt.Sprintf(`"phase":%q,"wants"`, phase(q)), 1)
	}
}

// TestSyncIsAskedToTheEnd: without a finalize hook the sync hook is asked about a parent that somebody else holds, and
// its status is written. Children are left to the garbage collector (Metacontroller).
func TestSyncIsAskedToTheEnd(t *testing.T) {
	p := newPasses(t, catSpec)
	p.hook = saysPhase(func(q *hook.Question) string {
		if q.Parent.GetDeletionTimestamp() != nil {
			return "Terminating"
		}
		return "Live"
	})
	p.settle()
	p.deleted()
	p.lose()
	p.edit("image", "b")
	p.Forget()
	p.run(3)
	if p.phase() != "Terminating" || p.images() != "a a" {
		t.Errorf("tom is %s, with pods %s", p.phase(), p.images())
	}
	for _, c := range p.Writes() {
		if c.String() != "patch status Cat tom" {
			t.Errorf("%s", c)
		}
	}
}

const finalized = catSpec + "  finalize: {}\n"

// TestTheLastStatusIsWritten: what the finalize hook said as it was done is in the status when our finalizer goes,
// whatever was written a moment before; then nobody is asked any more.
func TestTheLastStatusIsWritten(t *testing.T) {
	p := newPasses(t, finalized)
	p.settle()
	left := 2
	p.hook = func(*hook.Question) string {
		left--
		return fmt.Sprintf(`{"status":{"phase":"left %d"},"children":[],"finalized":%t}`, left, left == 0)
	}
	p.deleted()
	p.Forget()
	for range 4 {
		p.clock.Step(settleTime) // less than a second between two statuses
		_, err := p.r.Reconcile(t.Context(), p.request())
		must(t, err)
	}
	if p.phase() != "left 0" || !slices.Equal(p.tom().GetFinalizers(), []string{somebodyElses}) || left != 0 {
		t.Errorf("tom is %q, with finalizers %v; the hook was asked %d times", p.phase(), p.tom().GetFinalizers(), 2-left)
	}
	calls := p.Writes()
	if n := len(calls); n < 2 || calls[n-2].String() != "patch status Cat tom" || calls[n-1].String() != "patch Cat tom" {
		t.Errorf("writes %v", calls)
	}
}

// TestAStatusThatIsRefusedHoldsNobody: a parent whose last status the API server does not take goes all the same. What
// it could not say now it is told again.
func TestAStatusThatIsRefusedHoldsNobody(t *testing.T) {
	for _, c := range []struct {
		err  error
		goes bool
	}{
		{apierrors.NewInvalid(cats.Kind.GroupKind(), "tom", field.ErrorList{field.Required(field.NewPath("status"), "no")}), true},
		{apierrors.NewInternalError(errors.New("try again")), false},
	} {
		p := newPasses(t, finalized)
		p.settle()
		p.hook = func(*hook.Question) string { return `{"status":{"phase":"Gone"},"children":[],"finalized":true}` }
		p.deleted()
		p.Before = fakeserver.Refuse("patch status", "Cat", c.err)
		for range 2 {
			_, _ = p.pass()
		}
		if goes := !p.r.finalized(p.tom()); goes != c.goes {
			t.Errorf("%v: it goes: %t", c.err, goes)
		}
	}
}
