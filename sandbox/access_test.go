package sandbox_test

// These tests check who may do what.

import (
	"context"
	"net/http"
	"os"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestUnknownUserIsForbidden(t *testing.T) {
	c := newCluster(t)
	cfg, err := c.ConfigFor("somebody", "some-group")
	if err != nil {
		t.Fatal(err)
	}
	_, err = clientFor(t, cfg).CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("list pods as an unknown user: %v, want 403", err)
	}
}

func TestNoCredentialsAreUnauthorized(t *testing.T) {
	c := newCluster(t)
	client := clientFor(t, rest.AnonymousClientConfig(c.Config()))
	for _, path := range []string{"/api/v1/namespaces", "/version", "/readyz", "/metrics", "/openapi/v3"} {
		var status int
		client.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).StatusCode(&status)
		if status != http.StatusUnauthorized {
			t.Errorf("GET %s without credentials: status %d, want 401", path, status)
		}
	}
}

func TestKubeconfigIsPrivateAndWorks(t *testing.T) {
	c := newCluster(t)
	for path, want := range map[string]os.FileMode{c.Kubeconfig(): 0o600, c.DataDir(): 0o700 | os.ModeDir} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s, want %s", path, info.Mode(), want)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clientFor(t, cfg).CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list secrets with the kubeconfig: %v", err)
	}
}

func TestServiceAccountHasTheRightsOfItsRole(t *testing.T) {
	c := newCluster(t)
	c.grant(t, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: c.namespace, Name: "default"}, "list", "pods")
	cfg, err := c.ServiceAccountConfig(t.Context(), c.namespace, "default")
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, cfg)
	who, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := who.Status.UserInfo.Username, "system:serviceaccount:"+c.namespace+":default"; got != want {
		t.Errorf("the token is for %s, want %s", got, want)
	}
	if _, err := client.CoreV1().Pods(c.namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("list pods: %v", err)
	}
	if _, err := client.CoreV1().Secrets(c.namespace).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list secrets: %v, want 403", err)
	}
}

// Whoever blocks the deletion of an owner must be allowed to finalize that owner.
func TestBlockingTheOwnersDeletionNeedsPermission(t *testing.T) {
	c := newCluster(t)
	owner, err := c.client.AppsV1().Deployments(c.namespace).Create(t.Context(), deployment("owner", 0), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.grant(t, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "writer"}, "create", "configmaps")
	cfg, err := c.ConfigFor("writer")
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, cfg)
	for _, test := range []struct {
		name      string
		block     bool
		forbidden bool
	}{{"plain", false, false}, {"blocking", true, true}} {
		_, err := client.CoreV1().ConfigMaps(c.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: test.name,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(test.block),
			}},
		}}, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) != test.forbidden || (err != nil && !test.forbidden) {
			t.Errorf("create a config map with blockOwnerDeletion=%v: %v", test.block, err)
		}
	}
}

// grant lets subject use the verb on the resource in the test's namespace. It waits until the API server knows: its
// authorizer reads roles and bindings from watches of its own, which may lag behind the write.
func (c cluster) grant(t *testing.T, subject rbacv1.Subject, verb, resource string) {
	t.Helper()
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "granted-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}}},
	}
	role, err := c.client.RbacV1().Roles(c.namespace).Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.client.RbacV1().RoleBindings(c.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		user = "system:serviceaccount:" + subject.Namespace + ":" + subject.Name
	}
	eventually(t, func(ctx context.Context) string {
		review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               user,
				ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: c.namespace, Verb: verb, Resource: resource},
			},
		}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return err.Error()
		case !review.Status.Allowed:
			return user + " may not yet " + verb + " " + resource + ": " + review.Status.Reason
		}
		return ""
	})
}
