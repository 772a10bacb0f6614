package metacontroller

import (
	"time"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// ReadyRule returns when children are available that are updated under a strategy, which may be nil.
func ReadyRule(s *v1alpha1.ChildUpdateStrategy) readiness.Rule {
	r := readiness.Rule{Observed: s.EffectiveMethod() == v1alpha1.ChildUpdateRollingInPlace}
	if s == nil {
		return r
	}
	for _, c := range s.StatusChecks.Conditions {
		r.Checks = append(r.Checks, readiness.Check(c))
	}
	if s.MinReadySeconds != nil {
		r.MinReady = time.Duration(*s.MinReadySeconds) * time.Second
	}
	return r
}
