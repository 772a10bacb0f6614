package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
)

// This file asks the checker about what was played.

// Kinds returns what the checker has to know to judge a script's controllers.
func (s *Script) Kinds() ([]check.Kind, error) {
	var out []check.Kind
	all := parents.BuiltIn()
	for _, name := range s.Controllers {
		i := slices.IndexFunc(all, func(k check.Kind) bool { return k.Controller == name })
		if i < 0 {
			var known []string
			for _, k := range all {
				known = append(known, k.Controller)
			}
			return nil, fmt.Errorf("%s: the checker knows no controller %q; it knows: %s", s.Name, name,
				strings.Join(slices.Sorted(slices.Values(known)), ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// Scopes returns the resources that a stage has to record for a script. It fails like Kinds.
func (s *Script) Scopes() ([]check.Scope, error) {
	all, err := s.Kinds()
	if err != nil {
		return nil, err
	}
	var out []check.Scope
	for _, k := range all {
		for _, scope := range k.Scopes() {
			if !slices.Contains(out, scope) {
				out = append(out, scope)
			}
		}
	}
	return out, nil
}

// Verdict is what the checker says about a play.
type Verdict struct {
	// Violations are those that the script does not expect.
	Violations []check.Violation
	// Missed are the invariants that the script expects to be broken, and nobody broke.
	Missed []string
	// History is what was judged.
	History *check.History
}

// Err is all that the verdict finds wrong, nil if nothing.
func (v *Verdict) Err() error {
	var errs []error
	for _, violation := range v.Violations {
		errs = append(errs, errors.New(violation.String()))
	}
	for _, invariant := range v.Missed {
		errs = append(errs, fmt.Errorf("the script expects a violation of %s, and there is none", invariant))
	}
	return errors.Join(errs...)
}

// Judge lets the world come to rest and the checker look at all that happened: at every write, at rest, and that
// nothing is written at rest. While no manager runs there is no rest to judge.
func (p *Player) Judge(ctx context.Context, kinds ...check.Kind) (*Verdict, error) {
	if len(p.running) > 0 {
		if err := p.stage.Settle(ctx); err != nil {
			return nil, fmt.Errorf("settle after the last step: %w", err)
		}
	}
	rest, err := p.stage.Sync(ctx)
	if err != nil {
		return nil, err
	}
	later := rest
	if len(p.running) > 0 {
		if later, err = p.stage.Sync(ctx); err != nil {
			return nil, err
		}
	}
	h, err := p.stage.History()
	if err != nil {
		return nil, err
	}
	found := check.Check(h, kinds...)
	if len(p.running) > 0 {
		found = append(found, check.Rest(h, later, kinds...)...)
		found = append(found, check.Quiet(h, rest, later, kinds...)...)
	}
	return p.verdict(h, found), nil
}

func (p *Player) verdict(h *check.History, found []check.Violation) *Verdict {
	v := &Verdict{History: h}
	seen := map[string]bool{}
	for _, violation := range found {
		seen[violation.Invariant] = true
		if !p.expected[violation.Invariant] {
			v.Violations = append(v.Violations, violation)
		}
	}
	for _, invariant := range slices.Sorted(maps.Keys(p.expected)) {
		if !seen[invariant] {
			v.Missed = append(v.Missed, invariant)
		}
	}
	return v
}
