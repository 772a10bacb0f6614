package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file goes back to an older revision, the way kubectl does.

func readUndo(r *reader) action {
	k := r.kind()
	name := r.word("a name")
	to, _ := r.option("to")
	return func(ctx context.Context, p *Player) error {
		data, err := p.snapshot(ctx, name, to)
		if err != nil {
			return err
		}
		o, err := reference{kind: k, name: name}.one(ctx, p.stage)
		if err != nil {
			return err
		}
		return p.stage.Client().Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, data))
	}
}

// snapshot returns the data of a revision, by its number or its name; without either, that of the one that kubectl
// rollout undo chooses: the second newest.
func (p *Player) snapshot(ctx context.Context, parent, to string) ([]byte, error) {
	number, err := strconv.Atoi(cmp.Or(to, "0"))
	if err != nil {
		r, err := revisionOf(parent, to).one(ctx, p.stage)
		if err != nil {
			return nil, err
		}
		return dataOf(r)
	}
	k, _ := kindNamed(revisionWord)
	revisions, err := reference{kind: k, parent: parent, number: -1}.find(ctx, p.stage)
	if err != nil {
		return nil, err
	}
	byNumber := map[int]client.Object{}
	for _, r := range revisions {
		n, err := strconv.Atoi(numberOf(r))
		if err != nil {
			return nil, fmt.Errorf("revision %s: %w", r.GetName(), err)
		}
		byNumber[n] = r
	}
	numbers := slices.Sorted(maps.Keys(byNumber))
	if number == 0 && len(numbers) > 1 {
		number = numbers[len(numbers)-2]
	}
	r, ok := byNumber[number]
	if !ok {
		return nil, fmt.Errorf("there is no revision to go back to: %s has %v", parent, numbers)
	}
	return dataOf(r)
}

func dataOf(revision client.Object) ([]byte, error) {
	tree, err := treeOf(revision)
	if err != nil {
		return nil, err
	}
	return json.Marshal(tree["data"])
}
