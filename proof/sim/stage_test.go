package sim

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/proof/scenario/scenariotest"
)

// TestScenarios plays every script of the repository in the simulation.
func TestScenarios(t *testing.T) {
	for _, s := range scenariotest.Read(t, "../scenario/testdata") {
		if s.Only != "" && s.Only != StageName {
			continue // the file says why
		}
		t.Run(strings.TrimSuffix(filepath.Base(s.Name), ".txt"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scenariotest.One(t, s, scenariotest.Stage{
					Name: StageName, Form: scenario.Linear, Remember: true,
					Open: func(t *testing.T, s *scenario.Script) scenario.Stage {
						t.Helper()
						stage := Open(KindsOf(s.Controllers...)...)
						t.Cleanup(stage.Close)
						return stage
					},
				})
			})
		})
	}
}
