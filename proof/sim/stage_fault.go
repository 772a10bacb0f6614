package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file makes things fail on a stage.

// Fault implements [scenario.Stage].
func (s *Stage) Fault(_ context.Context, f scenario.FaultSpec) error {
	at := watched{resource: f.Resource}
	if f.Manager > 0 {
		at.manager = managerNames[f.Manager-1]
	}
	switch f.Do {
	case scenario.Fail:
		s.faults = append(s.faults, &staged{FaultSpec: f})
	case scenario.Refuse:
		s.refusal = append(s.refusal, &staged{FaultSpec: f})
	case scenario.Allow:
		s.refusal = slices.DeleteFunc(s.refusal, func(other *staged) bool {
			return other.Manager == f.Manager && other.Verb == f.Verb && other.Resource == f.Resource && other.Subresource == f.Subresource
		})
	case scenario.Hold:
		s.holds[at] = true
	case scenario.Release:
		delete(s.holds, at)
	case scenario.Rewind:
		rv, err := strconv.ParseUint(f.ResourceVersion, 10, 64)
		if err != nil {
			return fmt.Errorf("rewind %s: %w", f.Resource, err)
		}
		s.rewinds[at] = rv
	case scenario.Cut:
		s.cut(at)
	default:
		return fmt.Errorf("nobody knows how to %q", f.Do)
	}
	s.hold()
	return nil
}

// hold lets the watches of all managers know whether they are held.
func (s *Stage) hold() {
	for _, p := range s.w.processes {
		for _, i := range p.manager.caches.order {
			i.held = s.held(p.name, i.resource.GroupResource())
		}
	}
}

// cut lets managers list again.
func (s *Stage) cut(at watched) {
	for _, p := range s.w.processes {
		for _, i := range p.manager.caches.order {
			if (at.manager == "" || at.manager == p.name) && i.resource.GroupResource() == at.resource {
				s.w.relist(i, s.listed(p.name, at.resource))
			}
		}
	}
}

// matches reports whether a fault is about a request.
func matches(f scenario.FaultSpec, c *call) bool {
	switch {
	case !c.writes() || c.late:
		return false
	case f.Manager > 0 && c.from.name != managerNames[f.Manager-1]:
		return false
	case f.Verb != "*" && f.Verb != c.request.Verb:
		return false
	default:
		return f.Resource == c.request.Resource.GroupResource() && f.Subresource == c.request.Subresource
	}
}
