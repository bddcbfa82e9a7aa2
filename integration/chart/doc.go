// Package chart tests the Helm chart, the Kustomize base and the image on a real API server.
//
// Helm's own packages lint, render, install, upgrade and roll back the chart. Nodes of the control plane run no
// containers, so a test runs the daemon as the kubelet would: see pod.
package chart
