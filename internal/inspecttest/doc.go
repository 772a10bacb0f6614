// Package inspecttest is what the tests of package inspect and its sisters ask about: a DaemonSet, a CatSet and a
// ConfigMap with revisions and pods, and an API server that has them.
package inspecttest
