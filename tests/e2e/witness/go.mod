module github.com/c5c3/c5c3-operator/tests/e2e/witness

go 1.26.0
