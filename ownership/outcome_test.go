package ownership_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cairn-dev/cairn/ownership"
)

func TestUnknown(t *testing.T) {
	conflict, timeout := apierrors.NewConflict(pods, "web-0", io.EOF), apierrors.NewTimeoutError("too slow", 1)
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                   {nil, false},
		"refused":                    {apierrors.NewForbidden(pods, "web-0", nil), false},
		"a conflict, wrapped":        {fmt.Errorf("create: %w", conflict), false},
		"the connection broke":       {io.ErrUnexpectedEOF, true},
		"the same, wrapped":          {fmt.Errorf("create: %w", io.ErrUnexpectedEOF), true},
		"the server failed":          {apierrors.NewInternalError(io.EOF), true},
		"the server was too slow":    {timeout, true},
		"one of several is unknown":  {errors.Join(conflict, fmt.Errorf("create: %w", timeout)), true},
		"all of several are refused": {errors.Join(conflict, nil, apierrors.NewBadRequest("no")), false},
		"of several, deep inside":    {fmt.Errorf("pass: %w", errors.Join(conflict, errors.Join(io.EOF))), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownership.Unknown(c.err); got != c.want {
				t.Errorf("%v: got %v", c.err, got)
			}
		})
	}
}
