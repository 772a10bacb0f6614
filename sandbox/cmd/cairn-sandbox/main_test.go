package main

// These tests check what users of the binary see.

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTemporarySandboxLeavesNothing(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "sub", "config")
	cmd, tmp := testCommand(t, "--nodes=2", "--kubeconfig="+kubeconfig)
	p := start(t, cmd)
	if p.kubeconfig != kubeconfig {
		t.Errorf("it says KUBECONFIG=%s, want %s", p.kubeconfig, kubeconfig)
	}
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode() != 0o600 {
		t.Errorf("the kubeconfig: %v, %v; want mode 0600", info, err)
	}
	client := p.client(t)
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 2 {
		t.Errorf("%d nodes (%v), want 2", len(nodes.Items), err)
	}
	// A watch that somebody left open must not hold up the end.
	watch, err := client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	output := p.stop(t, syscall.SIGTERM)
	if !regexp.MustCompile(`(?m)^ +[0-9.]+s  ready$`).MatchString(output) || !regexp.MustCompile(`(?m)^ +[0-9.]+s  stopped$`).MatchString(output) {
		t.Errorf("the output lacks the lines ready and stopped:\n%s", output)
	}
	for _, dir := range []string{tmp, filepath.Dir(kubeconfig)} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v (%v)", dir, left, err)
		}
	}
}

func TestInterruptDuringTheStart(t *testing.T) {
	cmd, tmp := testCommand(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var sent time.Time
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "kube-apiserver") {
			sent = time.Now()
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("it ended with %v; stderr: %s", err, &stderr)
	}
	if took := time.Since(sent); took > stopBudget {
		t.Errorf("it took %s to stop, want %s or less", took, stopBudget)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestDataDirSurvivesARestart(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	cmd, _ := testCommand(t, "--data-dir="+data, "--nodes=3")
	p := start(t, cmd)
	client := p.client(t)
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Data:       map[string]string{"key": "value"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// It is in use.
	second, _ := testCommand(t, "--data-dir="+data)
	refused(t, second, 1, "data directory is in use")
	p.stop(t, os.Interrupt)

	cmd, _ = testCommand(t, "--data-dir="+data)
	p = start(t, cmd)
	client = p.client(t)
	kept, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || kept.Data["key"] != "value" {
		t.Errorf("the config map after the restart: %v (%v)", kept.Data, err)
	}
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 3 {
		t.Errorf("%d nodes after the restart (%v), want 3", len(nodes.Items), err)
	}
	// Somebody is alive on the nodes.
	_, err = client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	watch, err := client.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=p"})
	if err != nil {
		t.Fatal(err)
	}
	running := false
	for event := range watch.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			running = true
			break
		}
	}
	if !running {
		t.Error("a pod did not get to run after the restart")
	}
	p.stop(t, syscall.SIGTERM)
}

func TestRefusals(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, busy, _ := net.SplitHostPort(l.Addr().String())
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "version.json"), []byte(`{"format":1,"kubernetes":"v1.30.0"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
		exit int
	}{
		"busy port":             {[]string{"--port=" + busy}, "port is in use: 127.0.0.1:" + busy, 1},
		"other version":         {[]string{"--data-dir=" + old}, "v1.30.0", 1},
		"unwritable data dir":   {[]string{"--data-dir=" + filepath.Join(file, "data")}, "not a directory", 1},
		"unwritable kubeconfig": {[]string{"--kubeconfig=" + filepath.Join(file, "config")}, "kubeconfig cannot be written", 1},
		"unknown kind":          {[]string{"--upstream=deployment"}, `unknown kind "deployment"`, 2},
		"unknown flag":          {[]string{"--node=3"}, "unknown flag", 2},
		"negative readiness":    {[]string{"--ready-after=-1s"}, "ready after -1s", 2},
		"no duration":           {[]string{"--ready-after=5"}, "invalid argument", 2},
		"negative nodes":        {[]string{"--nodes=-3"}, "-3 nodes", 2},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, tmp := testCommand(t, test.args...)
			refused(t, cmd, test.exit, test.want)
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v (%v)", left, err)
			}
		})
	}
}

// The binary carries its own copies of the examples, so that it works from anywhere.
func TestExamplesAreTheDocumentedOnes(t *testing.T) {
	documented := os.DirFS("../../../examples")
	names, err := fs.Glob(documented, "*.yaml")
	if err != nil || len(names) < 3 {
		t.Fatalf("examples %v, %v", names, err)
	}
	ours, err := fs.Glob(examples, "examples/*.yaml")
	if err != nil || len(ours) != len(names) {
		t.Errorf("the binary has %v, documented are %v (%v)", ours, names, err)
	}
	for _, name := range names {
		want, err := fs.ReadFile(documented, name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := examples.ReadFile("examples/" + name); !bytes.Equal(got, want) {
			t.Errorf("examples/%s here differs from that of the repository (%v); copy it", name, err)
		}
	}
}
