// Package deploy checks the manifests in deploy/kubernetes against the types of Kubernetes and KEDA, and against one
// another. It is a module of its own, so that the product does not require those types. How the manifests and Compose
// files use the commands of the program is checked in cmd/roomsensor, which can parse a command line.
//
// Files:
//
//	render_test.go      renders the manifests as kubectl does
//	pods_test.go        rights, probes, ports, memory, time to stop, spreading, images
//	replicas_test.go    deployments, disruption budgets, autoscaler
//	services_test.go    Services and Ingress
//	network_test.go     network policies
//	secrets_test.go     secrets are references
package deploy
