package complete

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// This file completes the flags whose values are in the kubeconfig, and the namespace.

func (c *completer) contexts(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return keys(c.kubeconfig().Contexts), none
}

func (c *completer) clusters(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return keys(c.kubeconfig().Clusters), none
}

func (c *completer) users(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return keys(c.kubeconfig().AuthInfos), none
}

func (c *completer) namespaces(cmd *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := quick(cmd)
	defer stop()
	return c.named(ctx, "namespaces", "", begun), none
}

// kubeconfig is empty if there is none that can be read.
func (c *completer) kubeconfig() *clientcmdapi.Config {
	cfg, err := c.Cluster.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return clientcmdapi.NewConfig()
	}
	return &cfg
}

func keys[V any](m map[string]V) []cobra.Completion { return slices.Sorted(maps.Keys(m)) }
