package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/inspect/object"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/revision"
)

// This file carries a plan out. Nothing else in this package writes.

// Applied is the result of a plan.
type Applied struct {
	// Parent is the parent as the API server answered: after the undo, or as it would be after it.
	Parent client.Object
	// DryRun is true if nothing was stored.
	DryRun bool
	// Diff is a unified diff, as YAML, from the recorded part of the parent before to that in the API server's answer, so
	// that it includes defaults and the changes of admission.
	Diff string
	// Privileges are as in [Undo], by the API server's answer.
	Privileges []string
	// Altered is a unified diff, as YAML, from the revision to what the API server's answer has in its place, where that
	// is more than defaults: admission has changed it. Empty mostly.
	Altered string
	// Warnings are sentences about what else the caller should tell a user.
	Warnings []string
}

// ChangedError says that the parent has changed since it was read, and that nothing was written. The caller shows it;
// the user looks again and decides anew.
type ChangedError struct {
	Parent object.Parent
	// Gone is true if the object does not exist any more, or was replaced by another one of the same name.
	Gone bool
	// Err is what the API server said, nil if that was no error.
	Err error
}

// Error says what happened to the parent.
func (e *ChangedError) Error() string {
	if e.Gone {
		return fmt.Sprintf("%s was deleted or replaced since it was read; look again (nothing was changed)", e.Parent)
	}
	return fmt.Sprintf("%s changed since it was read; look again (nothing was changed)", e.Parent)
}

// Unwrap returns what the API server said.
func (e *ChangedError) Unwrap() error { return e.Err }

// Apply carries plan out, or has the API server say what it would do if dryRun is true. The recorded part of the parent
// becomes that of the revision, as a whole; the controller does the rest. Admission of the parent applies to an undo
// like to any edit.
//
// A status that was written meanwhile, as happens all the time during a rollout, is no obstacle, nor are metadata that
// the revision does not hold: if UID and everything else are what the plan was made for, the patch is made again for
// the newer version. Any other change is one.
//
// Errors: [*PlantedError] (unless it is a dry run), [*ChangedError], [*TerminatingError], [ErrNothingToUndo] if the API
// server finds nothing to change, or what the API server says; after each of them nothing was changed, unless the
// request or its response was lost on the way.
func (i *Inspector) Apply(ctx context.Context, plan *Undo, dryRun bool) (*Applied, error) {
	u := *plan // a plan may be carried out twice: as a dry run, and then for good
	err := u.Planted()
	if err != nil && !dryRun {
		return nil, err
	}
	for range maxReads {
		var out client.Object
		if out, err = i.patch(ctx, &u, dryRun); err == nil {
			done, err := u.applied(out, dryRun)
			if err == nil && !dryRun {
				done.Warnings = i.handOver(ctx, &u, out)
			}
			return done, err
		}
		switch {
		case apierrors.IsNotFound(err):
			return nil, &ChangedError{Parent: u.Parent, Gone: true, Err: err}
		case !apierrors.IsConflict(err):
			return nil, fmt.Errorf("bring %s back to %s (nothing was changed): %w", u.Parent, u.To, err)
		}
		fresh, again := i.again(ctx, u.kind, u.live)
		if again != nil {
			return nil, again
		}
		if err := terminatingError(u.kind, fresh); err != nil {
			return nil, err
		}
		same, unknown := u.sameSpec(fresh)
		if unknown != nil {
			return nil, unknown
		}
		if !same {
			break
		}
		if err := u.aim(fresh); err != nil {
			return nil, err
		}
	}
	return nil, &ChangedError{Parent: u.Parent, Err: err}
}

// sameSpec reports whether nothing but status and metadata was written since the plan was made, and nothing that the
// revision holds. The objects say so, and not their generations: ConfigMaps have none, and a kind that only its
// revisions describe may count its statuses as well.
func (u *Undo) sameSpec(fresh client.Object) (bool, error) {
	was, errWas := bare(u.live)
	is, errIs := bare(fresh)
	a, errA := content.Recorded(u.To.stored.Target, u.live)
	b, errB := content.Recorded(u.To.stored.Target, fresh)
	if err := errors.Join(errWas, errIs, errA, errB); err != nil {
		return false, fmt.Errorf("compare %s with what was read before: %w", u.Parent, err)
	}
	return bytes.Equal(a, b) && apiequality.Semantic.DeepEqual(was, is), nil
}

// bare is an object without its status and metadata.
func bare(o client.Object) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", o, err)
	}
	out := maps.Clone(tree) // of an unstructured object it is the object's own
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(out, field)
	}
	return out, nil
}

func (i *Inspector) patch(ctx context.Context, u *Undo, dryRun bool) (client.Object, error) {
	opts := []client.PatchOption{client.FieldOwner(FieldOwner)}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	out := anyobject.Blank(u.live)
	return out, i.client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, u.Patch), opts...)
}

// applied describes what the API server answered.
func (u *Undo) applied(out client.Object, dryRun bool) (*Applied, error) {
	title := u.To.String()
	if dryRun {
		title += ", as the API server would store it"
	}
	a := &Applied{Parent: out, DryRun: dryRun}
	before, after, err := u.documents(out)
	if err != nil {
		return nil, err
	}
	if a.Diff, a.Privileges, err = u.compare(before, after, title); err != nil {
		return nil, err
	}
	if a.Diff == "" {
		return nil, &NothingToUndoError{Parent: u.Parent, To: &u.To, Part: u.kind.Is().Part}
	}
	a.Altered, err = u.altered(out)
	return a, err
}

// altered compares the revision with what is stored in its place. What only one of them has is taken for defaults, and
// for fields that are not known any more.
func (u *Undo) altered(out client.Object) (diff string, err error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(out)
	if err != nil {
		return "", fmt.Errorf("convert %T: %w", out, err)
	}
	stored, err := u.To.stored.Target.Snapshot(tree)
	if err != nil {
		return "", fmt.Errorf("read what is stored of %s: %w", u.Parent, err)
	}
	asked := u.To.stored.Snapshot
	if revision.Compare(asked, stored) != revision.RuleNone || revision.Askable(asked, stored) {
		return "", nil
	}
	a, errA := content.JSON(asked)
	b, errB := content.JSON(stored)
	if err := errors.Join(errA, errB); err != nil {
		return "", err
	}
	return u.mask.Unified(u.To.String(), a, "what admission makes of it", b)
}
