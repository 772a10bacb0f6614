// Package scenariotest plays the scripts of a folder as tests, one subtest for each file, on whatever stage it is
// given.
//
//	func TestScenarios(t *testing.T) {
//		scenariotest.Play(t, "../testdata", scenariotest.Stage{Name: "simulation", Form: scenario.Linear, Open: open})
//	}
//
// With the flag -update the histories that the files remember are written anew.
package scenariotest

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/proof/scenario"
)

var update = flag.Bool("update", false, "write the histories of the scenarios anew")

// Stage says how to get a stage.
type Stage struct {
	// Name is by what scripts call it.
	Name string
	// Form is how its histories are written.
	Form scenario.Form
	// Parallel reports whether a script may play at the same time as others; nil means that none may. Those that may not
	// come first.
	Parallel func(*scenario.Script) bool
	// Remember is true if every file is to hold a history for this stage. Otherwise -update writes only those that are
	// there already.
	Remember bool
	// Open returns a stage for a script, which is closed when the test ends.
	Open func(t *testing.T, s *scenario.Script) scenario.Stage
}

// Read reads all scripts of a folder, in the order of their names.
func Read(t testing.TB, folder string) []*scenario.Script {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no scripts in %s: %v", folder, err)
	}
	var out []*scenario.Script
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Parse(name, f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// Play plays every script of a folder that the stage can play.
func Play(t *testing.T, folder string, stage Stage) {
	t.Helper()
	for _, s := range Read(t, folder) {
		if s.Only != "" && s.Only != stage.Name {
			continue // the file says why
		}
		t.Run(strings.TrimSuffix(filepath.Base(s.Name), ".txt"), func(t *testing.T) {
			if stage.Parallel != nil && stage.Parallel(s) {
				t.Parallel()
			}
			One(t, s, stage)
		})
	}
}

// One plays one script, has it judged, and compares its history.
func One(t *testing.T, s *scenario.Script, stage Stage) {
	t.Helper()
	ctx := t.Context()
	kinds, err := s.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Play(ctx, stage.Open(t, s))
	if err != nil {
		t.Error(err)
	}
	v, judgeErr := p.Judge(context.WithoutCancel(ctx), kinds...)
	if judgeErr != nil {
		t.Fatal(judgeErr)
	}
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("what happened:\n%s", scenario.Render(v.History, scenario.Linear))
		return
	}
	if _, has := s.Golden(stage.Name); *update && (has || stage.Remember) {
		err = scenario.UpdateGolden(s.Name, stage.Name, v.History, stage.Form)
	} else {
		err = s.CompareGolden(stage.Name, v.History, stage.Form)
	}
	if err != nil {
		t.Error(err)
	}
}
