// Package roles is the verb "cairn roles": it prints the roles that package deploy makes of a CompositeController, a
// DecoratorController or a HistoryPolicy.
package roles

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	var files, related, allow []string
	var constrained bool
	cmd := &cobra.Command{
		Use:   "roles (-f FILE | TYPE/NAME)",
		Short: "Print the roles that the manager needs for one controller or policy",
		Long: `Print the roles that the manager needs to run a CompositeController or a DecoratorController, or to carry out a
HistoryPolicy, and no more: what it may touch is what that object names. If it names a ServiceAccount (annotation
cairn.dev/service-account: NAMESPACE/NAME), that account gets the roles, and the manager the right to act as it.
ConfigMaps that its webhooks refer to are granted by name, and Secrets with --allow=secret:NAMESPACE/NAME.

After an edit of the controller print and apply them again. What a customize hook asks for only the hook knows: name it
with --related. Resources that give more than they seem to, such as secrets, roles and webhook
configurations, are granted with --allow only.

The API server refuses to grant rights that the author of a role does not have. A controller that makes bindings needs each role that they
refer to, --allow=bind:clusterroles/NAME or --allow=bind:roles/NAME; one that makes roles needs --allow=escalate:roles or
--allow=escalate:clusterroles, which gives the manager all rights. If it has these rights anyway, say so: --allow=held:roles,
--allow=held:rolebindings.

With --namespace everything is granted in that namespace only, for a manager that runs with --watch-namespace. The roles
that all controllers share are deploy/roles/composite.yaml, deploy/roles/decorator.yaml and deploy/roles/recorder.yaml.`,
		Example: `  # A controller that is in a file
  cairn roles -f catset.yaml | kubectl apply -f -

  # One that is in the cluster, whose customize hook asks for nodes and deployments
  cairn roles compositecontroller/catset --related=nodes,deployments.apps

  # What it takes to record ConfigMaps
  cairn roles historypolicy/configmaps | kubectl apply -f -`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(files) == 0:
				return env.OneObject(args)
			case len(args) > 0:
				return fmt.Errorf("-f and %q: name a file or an object, not both", strings.Join(args, " "))
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil,
		"file with the controller, - for the standard input; other objects in it are left out")
	cmd.Flags().StringSliceVar(&related, "related", nil,
		"resources that the customize hook may ask for, to be read only: nodes,deployments.apps")
	cmd.Flags().StringSliceVar(&allow, "allow", nil,
		"what gives more than it seems to: a resource such as secrets; secret:NAMESPACE/NAME, bind:ROLES/NAME, escalate:ROLES, held:RESOURCE; "+
			"undo, for parents with the annotation cairn.dev/on-deadline")
	cmd.Flags().BoolVar(&constrained, "constrained-impersonation", false,
		"let the manager do for the ServiceAccount only what is granted here, not all that the account may (Kubernetes 1.36)")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		grant := deploy.Grant{Namespace: *e.Cluster.Namespace, Related: resources(related), Constrained: constrained}
		if err := allowed(allow, &grant); err != nil {
			return err
		}
		if len(files) > 0 {
			return fromFiles(e, files, grant)
		}
		_, o, err := e.Open(args)
		if err != nil {
			return err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		return show(e, &unstructured.Unstructured{Object: content}, nil, grant)
	}
	return cmd
}

// resources reads names as kubectl does: pods, deployments.apps.
func resources(names []string) []schema.GroupResource {
	out := make([]schema.GroupResource, 0, len(names))
	for _, name := range names {
		out = append(out, schema.ParseGroupResource(name))
	}
	return out
}

// allowed reads the values of --allow.
func allowed(values []string, g *deploy.Grant) error {
	for _, value := range values {
		what, of, special := strings.Cut(value, ":")
		switch {
		case value == "undo":
			g.Undo = true
		case !special:
			g.Allow = append(g.Allow, schema.ParseGroupResource(value))
		case what == "bind":
			resource, name, ok := strings.Cut(of, "/")
			if !ok {
				return env.Usagef("--allow=%s names no role; --allow=bind:clusterroles/view does", value)
			}
			g.Bind = append(g.Bind, deploy.RoleRef{Resource: plural(resource), Name: name})
		case what == "secret":
			namespace, name, ok := strings.Cut(of, "/")
			if !ok {
				return env.Usagef("--allow=%s names no Secret; --allow=secret:NAMESPACE/NAME does", value)
			}
			g.Secrets = append(g.Secrets, types.NamespacedName{Namespace: namespace, Name: name})
		case what == "escalate":
			g.Escalate = append(g.Escalate, plural(of))
		case what == "held":
			g.Held = append(g.Held, plural(of))
		default:
			return env.Usagef("--allow=%s: there is no %q; there are: secret, bind, escalate, held", value, what)
		}
	}
	return nil
}

// plural takes the names that kubectl takes for resources of RBAC.
func plural(resource string) string {
	resource, _, _ = strings.Cut(resource, ".")
	if !strings.HasSuffix(resource, "s") {
		resource += "s"
	}
	return resource
}

// remedies say how roles and bindings are allowed.
var remedies = map[string]string{
	"roles":               "--allow=escalate:roles lets the manager write any, which is to have all rights",
	"clusterroles":        "--allow=escalate:clusterroles lets the manager write any, which is to have all rights",
	"rolebindings":        "name each role that they refer to with --allow=bind:clusterroles/NAME or --allow=bind:roles/NAME",
	"clusterrolebindings": "name each role that they refer to with --allow=bind:clusterroles/NAME",
}

// fromFiles prints the roles of all controllers in files. There has to be one.
func fromFiles(e *env.Env, files []string, grant deploy.Grant) error {
	var all []*unstructured.Unstructured
	for _, file := range files {
		objects, err := load(e, file)
		if err != nil {
			return err
		}
		all = append(all, objects...)
	}
	shown := false
	for _, o := range all {
		err := show(e, o, all, grant)
		if _, other := errors.AsType[*deploy.NoControllerError](err); other {
			continue
		}
		if err != nil {
			return err
		}
		shown = true
	}
	if !shown {
		return fmt.Errorf("there is no CompositeController, no DecoratorController and no HistoryPolicy in %s", strings.Join(files, ", "))
	}
	return nil
}

// load reads the objects of one file.
func load(e *env.Env, file string) ([]*unstructured.Unstructured, error) {
	from := e.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(from, 4096); ; {
		o := &unstructured.Unstructured{}
		switch err := decoder.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", file, err)
		case len(o.Object) > 0:
			out = append(out, o)
		}
	}
}

// show prints the roles of one controller. beside are the objects of the files in which it is.
func show(e *env.Env, o *unstructured.Unstructured, beside []*unstructured.Unstructured, grant deploy.Grant) error {
	var unknown []schema.GroupResource
	grant.Cluster, unknown = clusterScoped(e, deploy.Parents(o), beside)
	roles, err := deploy.RolesOf(o, grant)
	if err != nil {
		return advised(err)
	}
	if len(unknown) > 0 {
		grant.Cluster = append(grant.Cluster, unknown...)
		if _, err := deploy.RolesOf(o, grant); err != nil {
			e.Warn(fmt.Sprintf("Whether %s are in a namespace is not known here. If they are not: %v.", unknown[0], err))
		}
	}
	if resource, _, _ := unstructured.NestedString(o.Object, "spec", "resource", "resource"); o.GetKind() == "HistoryPolicy" {
		e.Warn(fmt.Sprintf("Everyone who may read ControllerRevisions, as the ClusterRole view allows, will read the %s that are recorded, "+
			"earlier versions too.", resource))
	}
	const header = "---\n# What cairn's manager may do for %s %s%s, made by \"cairn roles\".\n"
	as := ""
	if account, err := v1alpha1.ServiceAccountOf(o); err == nil && account.Name != "" {
		as = ", as ServiceAccount " + account.String()
		if grant.Namespace == "" && account.Namespace != deploy.Namespace {
			e.Warn(fmt.Sprintf("Everyone who may create pods in namespace %s, as the ClusterRole edit allows, gets these rights in all namespaces.",
				account.Namespace))
		}
	}
	_, err = fmt.Fprintf(e.Out, header+"%s", o.GetKind(), o.GetName(), as, deploy.YAML(roles))
	return err
}

// advised adds to an error what the user can do about it.
func advised(err error) error {
	if powerful, ok := errors.AsType[*deploy.PowerfulError](err); ok {
		var names []string
		for _, r := range powerful.Resources {
			names = append(names, r.String())
		}
		for _, s := range powerful.Secrets {
			names = append(names, "secret:"+s.String())
		}
		err = fmt.Errorf("%w; if that is meant, add --allow=%s", err, strings.Join(names, ","))
	}
	if escalation, ok := errors.AsType[*deploy.EscalationError](err); ok {
		for _, resource := range escalation.Resources {
			err = fmt.Errorf("%w; for %[2]s, %[3]s, or say with --allow=held:%[2]s that the manager has these rights anyway",
				err, resource, remedies[resource])
		}
	}
	return err
}
