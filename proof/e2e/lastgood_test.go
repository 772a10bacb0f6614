package e2e

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	exit "github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/sandbox"
)

// TestTheLastGoodOne: two edits in a row that do not start. The revision before both is noted as completed, by no
// request more than records the next one, and an undo finds it, after which the history says what was gone back to.
func TestTheLastGoodOne(t *testing.T) {
	a := &asking{newEnv(t), t.TempDir()}
	a.cairn()
	web := a.daemonSet("web", "web:1")
	a.create(web)
	a.rolledOut(web)
	a.says(exit.OK, "history ds/web -o jsonpath={.revisions[*].completed}", "true")
	for _, image := range []string{"broken:2", "broken:3"} {
		a.edit(web, func(ds *appsv1.DaemonSet) {
			ds.Spec.Template.Spec.Containers[0].Image = image
			ds.Spec.Template.Annotations = map[string]string{sandbox.ReadyAnnotation: "false"}
		})
		a.eventually("a pod of "+image, func() error {
			if a.running(web, image) == 0 {
				return errors.New("there is none")
			}
			return nil
		})
	}
	a.says(exit.OK, "history ds/web -o custom-columns=REV:.revision,GOOD:.completed", "1     true", "2     <none>", "3     <none>")
	a.says(exit.OK, "undo ds/web --to last-good", "rolled back to revision 1")
	a.rolledOut(web)
	a.images(web, "web:1")
	a.says(exit.OK, "history ds/web -o wide", "rollback to 1")
	a.says(exit.OK, "history ds/web -o jsonpath={.revisions[?(@.current)].was}", "1")
}
