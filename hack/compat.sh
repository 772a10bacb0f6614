#!/usr/bin/env bash
# Runs the real controller of a kind of others against the sandbox, and asks the command line about its objects:
#   hack/compat.sh argo-rollouts
# The controller is built from its published module (proof/compat), with that module's own dependencies: 5 minutes the
# first time. What is seen is in docs/kinds.md.
set -euo pipefail
cd "$(dirname "$0")/.."

with=${1:-argo-rollouts}
case $with in
argo-rollouts)
	module=github.com/argoproj/argo-rollouts main=./cmd/rollouts-controller crds=manifests/crds ;;
*)
	echo "compat: there is no $with; there is: argo-rollouts" >&2
	exit 2 ;;
esac

work=$PWD/bin/compat/$with
mkdir -p "$work"
source=$(cd proof && go run ./compat/cmd/published "$module")
if [ ! -x "$work/controller" ]; then
	rm -rf "$work/source"
	cp -r "$source" "$work/source"
	chmod -R u+w "$work/source"
	(cd "$work/source" && GOWORK=off GOFLAGS=-mod=mod go build -o "$work/controller" "$main")
fi

data=$(mktemp -d)
bin/cairn-sandbox --data-dir "$data" --nodes 3 >"$work/sandbox.log" 2>&1 &
sandbox=$!
controller=
trap 'kill $controller $sandbox 2>/dev/null || true; wait; rm -rf "$data"' EXIT
until [ -s "$data/kubeconfig" ] && bin/kubectl --kubeconfig "$data/kubeconfig" get --raw /readyz >/dev/null 2>&1; do
	kill -0 $sandbox
done
export KUBECONFIG=$data/kubeconfig
kubectl() { bin/kubectl "$@"; }

for crd in "$source/$crds"/*-crd.yaml; do kubectl apply --server-side -f "$crd" >/dev/null; done
kubectl wait --for=condition=Established crd --all --timeout=60s >/dev/null
kubectl create namespace argo-rollouts >/dev/null # its lease is there
"$work/controller" --kubeconfig "$KUBECONFIG" --namespaced=false --metricsport 18090 --healthzPort 18080 >"$work/controller.log" 2>&1 &
controller=$!

rollout() { # an image
	cat <<-YAML | kubectl apply -f - >/dev/null
	apiVersion: argoproj.io/v1alpha1
	kind: Rollout
	metadata: {name: web, namespace: default}
	spec:
	  replicas: 3
	  selector: {matchLabels: {app: web}}
	  strategy: {canary: {antiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: {weight: 1}}, steps: [{setWeight: 50}]}}
	  template:
	    metadata: {labels: {app: web}}
	    spec: {containers: [{name: web, image: "$1"}]}
	YAML
}
healthy() { # an image, and how many pods run it
	kubectl wait --for=jsonpath='{.status.phase}'=Healthy rollout/web --timeout=60s >/dev/null
	for _ in $(seq 600); do
		[ "$(kubectl get pods -l app=web -o jsonpath='{range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sort | uniq -c | tr -s ' ')" = " 3 $1" ] && return
		sleep 0.2
	done
	echo "compat: the pods do not run $1" >&2
	exit 1
}
ask() { echo; echo "\$ cairn $*"; bin/cairn "$@" || echo "=> $?"; }

for image in nginx:1.27 nginx:1.28 nginx:1.29; do rollout $image; healthy $image; done
ask history rollout/web
ask status rollout/web
ask diff rollout/web -o changes
ask undo rollout/web --yes
healthy nginx:1.28
written=$(kubectl get rollout web -o jsonpath='{.spec.template.spec.dnsPolicy}{.spec.template.spec.affinity}')
[ -z "$written" ] || { echo "compat: the undo wrote what the controller had filled in: $written" >&2; exit 1; }
[ "$(kubectl get replicasets -o name | wc -l)" = 3 ] || { echo "compat: the controller made another revision" >&2; exit 1; }
ask history rollout/web
ask tree rollout/web
ask verify rollout/web
echo
echo "compat: $with: the pods run what the undo said"
