// Package check holds the manifests beside it to the types of Kubernetes and
// KEDA, and to one another. It is a module of its own, so that what it needs for
// that stays out of the product's.
package check
