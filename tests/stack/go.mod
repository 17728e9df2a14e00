module github.com/c5c3/c5c3-operator/tests/stack

go 1.26.0

require (
	github.com/gophercloud/gophercloud/v2 v2.12.0
	golang.org/x/sync v0.20.0
	golang.org/x/sys v0.43.0
	sigs.k8s.io/yaml v1.6.0
)

require (
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	gopkg.in/yaml.v2 v2.4.0 // indirect
)
