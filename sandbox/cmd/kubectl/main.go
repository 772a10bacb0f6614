// Command kubectl is the real kubectl, built from k8s.io/kubectl at the version of the sandbox's API server, so that a
// machine with nothing but Go can use the sandbox.
package main

import (
	"os"

	// The cloud providers' login plugins, as in the released kubectl.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	_ "github.com/cairn-dev/cairn/sandbox/internal/kubeversion"
)

func main() {
	// kubectl logs while it builds its commands (plugins, kuberc), before cobra has parsed -v.
	if _, err := logs.GlogSetter(cmd.GetLogVerbosity(os.Args)); err != nil {
		util.CheckErr(err)
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
