package composite

// For how long a parent is left alone after its children were written.

import (
	"strings"
	"testing"
	"time"
)

// again runs a pass without time going by, and reports for how long the parent is left alone and what was written.
func (p *passes) again() (time.Duration, string) {
	p.t.Helper()
	p.Forget()
	result, err := p.r.Reconcile(p.t.Context(), p.request())
	must(p.t, err)
	var wrote []string
	for _, call := range p.Writes() {
		if call.Kind == "Pod" {
			wrote = append(wrote, call.Verb+" "+call.Name)
		}
	}
	return result.RequeueAfter, strings.Join(wrote, ", ")
}

func (p *passes) leftAlone() bool {
	p.t.Helper()
	wait, wrote := p.again()
	return wait > 0 && wait <= settleTime && wrote == ""
}

// TestNextStepWithoutWaiting: the next child is taken as soon as the one before serves, and not a moment earlier.
func TestNextStepWithoutWaiting(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	p.edit("image", "b")
	p.clock.Step(time.Second)
	for _, step := range []string{"delete tom-2, create tom-2", "delete tom-1, create tom-1", "delete tom-0, create tom-0"} {
		if _, wrote := p.again(); wrote != step {
			t.Fatalf("%s, want %s", wrote, step)
		}
		asked := len(p.asked)
		if !p.leftAlone() || len(p.asked) != asked {
			t.Error("it is not left alone while the new pod is not ready")
		}
		p.makeReady()
	}
}

// TestNextStepOnceItIsGone: a pod that takes its time to go is replaced as soon as it has gone.
func TestNextStepOnceItIsGone(t *testing.T) {
	p := newPasses(t, catSpec)
	p.settle()
	held := p.pods()[2]
	held.SetFinalizers([]string{"example.com/stays"})
	must(t, p.Raw.Update(t.Context(), &held))
	p.edit("image", "b")
	p.clock.Step(time.Second)
	if _, wrote := p.again(); wrote != "delete tom-2" || !p.leftAlone() {
		t.Fatalf("%s, and it is not left alone", wrote)
	}
	held = p.pods()[2]
	held.SetFinalizers(nil)
	must(t, p.Raw.Update(t.Context(), &held))
	if _, wrote := p.again(); wrote != "create tom-2" {
		t.Error(wrote)
	}
}

// TestTimeTells: what was changed in place, or has no checks to pass, is left alone for the whole time.
func TestTimeTells(t *testing.T) {
	for name, spec := range map[string]string{
		"changed in place": strings.Replace(catSpec, "RollingRecreate", "RollingInPlace", 1),
		"no status checks": strings.Replace(catSpec, `    statusChecks: {conditions: [{type: Ready, status: "True"}]}`, "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPasses(t, spec)
			p.settle()
			p.edit("image", "b")
			p.clock.Step(time.Second)
			if _, wrote := p.again(); wrote == "" {
				t.Fatal("nothing was written")
			}
			p.makeReady()
			if !p.leftAlone() {
				t.Error("it is not left alone")
			}
			p.clock.Step(settleTime)
			if _, wrote := p.again(); wrote == "" {
				t.Error("it is still left alone")
			}
		})
	}
}
