package sandbox

// This file creates and deletes simulated nodes.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/cairn-dev/cairn/sandbox/internal/kubeversion"
)

const (
	// SimulatedLabel is the label that ScaleNodes gives to the nodes it made, with the value "true", and counts.
	SimulatedLabel = "sandbox.cairn.dev/simulated"

	nodePrefix = "node-"
	// maxNodes is the number of /24 networks in podRange.
	maxNodes = 1 << 15
	// podRange holds the addresses of pods, 254 for each node.
	podRange = "10.128.0.0/9"

	// nodeGracePeriod is how long a node stays Ready without a sign of life. Simulated nodes give none: at rest nobody
	// should write, so that a test can demand just that. Ten years stand for "for ever".
	nodeGracePeriod = 10 * 365 * 24 * time.Hour
)

// ScaleNodes makes the number of simulated nodes n: it creates node-0, node-1 and so on as needed, or deletes the ones
// with the highest numbers as DeleteNode does. It returns when the API server has done so and all nodes are usable.
func (s *Sandbox) ScaleNodes(ctx context.Context, n int) error {
	if n < 0 || n > maxNodes {
		return fmt.Errorf("%w: %d nodes; want 0 to %d", ErrInvalidOptions, n, maxNodes)
	}
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	have, err := simulatedNodes(ctx, client)
	if err != nil {
		return err
	}
	for len(have) > n {
		last := have[len(have)-1]
		have = have[:len(have)-1]
		if err := s.DeleteNode(ctx, nodePrefix+strconv.Itoa(last)); err != nil {
			return err
		}
	}
	for i := 0; len(have) < n; i++ {
		if slices.Contains(have, i) {
			continue
		}
		have = append(have, i)
		if _, err := client.CoreV1().Nodes().Create(ctx, newNode(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node %s%d: %w", nodePrefix, i, err)
		}
	}
	return s.waitForNodes(ctx, client)
}

// DeleteNode takes a node away at once, the way a machine vanishes: its object goes, and then the pods that were bound
// to it, without the 40 seconds for which the pod garbage collector would keep them. To see those, delete the Node
// object instead. A node that does not exist is no error.
func (s *Sandbox) DeleteNode(ctx context.Context, name string) error {
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	if err := client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String(),
	})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", name, err)
	}
	var errs []error
	for _, pod := range pods.Items {
		err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64),
			Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("delete pod %s/%s of node %s: %w", pod.Namespace, pod.Name, name, err))
		}
	}
	return errors.Join(errs...)
}

// firstNodes makes the nodes that Options ask for.
func (s *Sandbox) firstNodes(ctx context.Context) error {
	switch n := s.options.Nodes; {
	case n == NoNodes:
		return s.ScaleNodes(ctx, 0)
	case n > 0:
		return s.ScaleNodes(ctx, n)
	case s.data.fresh:
		return s.ScaleNodes(ctx, DefaultNodes)
	default:
		return nil
	}
}

// simulatedNodes returns the numbers of the nodes that ScaleNodes made, in ascending order.
func simulatedNodes(ctx context.Context, client kubernetes.Interface) ([]int, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: SimulatedLabel + "=true"})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	var numbers []int
	for _, node := range list.Items {
		digits, _ := strings.CutPrefix(node.Name, nodePrefix)
		if i, err := strconv.Atoi(digits); err == nil {
			numbers = append(numbers, i)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// nodeAddress returns the address of node number i, from 172.16.0.1 on.
func nodeAddress(i int) string { return net.IPv4(172, 16, byte((i+1)>>8), byte(i+1)).String() }

// newNode returns node number i, as its kubelet would register it.
func newNode(i int) *corev1.Node {
	name := nodePrefix + strconv.Itoa(i)
	pods := &net.IPNet{IP: net.IPv4(10, byte(128+i>>8), byte(i), 0), Mask: net.CIDRMask(24, 32)}
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("250"), // as many as it has addresses for
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				SimulatedLabel:           "true",
				corev1.LabelHostname:     name,
				corev1.LabelOSStable:     "linux",
				corev1.LabelArchStable:   "amd64",
				corev1.LabelTopologyZone: "zone-" + string('a'+rune(i%3)),
			},
		},
		Spec: corev1.NodeSpec{PodCIDR: pods.String(), PodCIDRs: []string{pods.String()}},
		Status: corev1.NodeStatus{
			Capacity:    size,
			Allocatable: size,
			Conditions:  nodeConditions(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalIP, Address: nodeAddress(i)},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          kubeversion.Version,
				OperatingSystem:         "linux",
				Architecture:            "amd64",
				OSImage:                 "simulated by KWOK",
				KernelVersion:           "none",
				ContainerRuntimeVersion: "kwok://0.8.0",
			},
		},
	}
	now := metav1.Now()
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime, node.Status.Conditions[i].LastTransitionTime = now, now
	}
	return node
}
