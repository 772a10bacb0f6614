package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// This file plays a script, step by step.

// Player plays steps on a stage and remembers what they said to remember. One goroutine uses it.
type Player struct {
	stage Stage
	files map[string]string

	running map[int]bool
	// moments are what remember wrote down, by name.
	moments map[string]moment
	// expected are the invariants that are to be broken at the end.
	expected map[string]bool
}

// moment is what there was when a script said to remember it.
type moment struct {
	resourceVersion string
	// objects are the UIDs of pods and revisions.
	objects map[types.UID]bool
}

// StepError is a step that could not be played, or whose expectation did not hold.
type StepError struct {
	Name string
	Step Step
	Err  error
}

// Error is the place, the step and what was wrong.
func (e *StepError) Error() string {
	return fmt.Sprintf("%s:%d: %s: %v", e.Name, e.Step.Line, e.Step, e.Err)
}

// Unwrap returns what was wrong.
func (e *StepError) Unwrap() error { return e.Err }

// NewPlayer returns a player for a stage. The files are for apply; nil if no step applies one.
func NewPlayer(stage Stage, files map[string]string) *Player {
	return &Player{stage: stage, files: files, running: map[int]bool{}, moments: map[string]moment{}, expected: map[string]bool{}}
}

// Play acts out a script on a stage, and stops at the first step that fails, which the error names as a [*StepError].
// The first manager starts before the first step that is not about nodes. Judge says whether the controllers kept their
// promises meanwhile; if an expectation failed, that is worth asking too.
func (s *Script) Play(ctx context.Context, stage Stage) (*Player, error) {
	p := NewPlayer(stage, s.Files)
	for i, step := range s.Steps {
		first := step.Verb != "nodes" && !slices.ContainsFunc(s.Steps[:i], func(s Step) bool { return s.Verb != "nodes" })
		if first {
			if err := p.start(ctx, 1); err != nil {
				return p, &StepError{Name: s.Name, Step: step, Err: err}
			}
		}
		if err := p.Do(ctx, step); err != nil {
			return p, &StepError{Name: s.Name, Step: step, Err: err}
		}
	}
	return p, nil
}

// Do plays one step. It starts no manager by itself.
func (p *Player) Do(ctx context.Context, step Step) error {
	act, err := compile(step, p.files)
	if err != nil {
		return err
	}
	return act(ctx, p)
}

func (p *Player) start(ctx context.Context, n int) error {
	p.running[n] = true
	return p.stage.StartManager(ctx, n)
}

func (p *Player) kill(ctx context.Context, n int) error {
	delete(p.running, n)
	return p.stage.KillManager(ctx, n)
}

// file returns a section of the script.
func file(files map[string]string, name string) (string, error) {
	if text, ok := files[name]; ok {
		return text, nil
	}
	if strings.HasSuffix(name, historySuffix) {
		return "", errors.New("that is a history")
	}
	return "", fmt.Errorf("the script has no section -- %s --", name)
}
