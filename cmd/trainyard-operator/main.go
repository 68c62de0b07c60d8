// Command trainyard-operator runs training jobs on a Kubernetes cluster.
package main

import "fmt"

func main() {
	fmt.Println("trainyard-operator: training jobs are not served yet")
}
