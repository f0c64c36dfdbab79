// Command train fits a linear function with GoMLX, on the plugin that GOMLX_BACKEND names.
package main

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/xla"
	. "github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// step takes a step of gradient descent towards weights with which the inputs give the labels.
func step(weights, inputs, labels *Node) (*Node, *Node) {
	outputs := Dot(inputs, weights)
	loss := ReduceAllMean(Square(Sub(outputs, labels)))
	gradient := Gradient(loss, weights)[0]
	return Sub(weights, MulScalar(gradient, 0.1)), loss
}

func main() {
	backend := backends.MustNew()
	train := MustNewExec(backend, step)
	inputs := [][]float32{{1, 0}, {0, 1}, {1, 1}, {2, -1}}
	labels := []float32{3, -1, 2, 7}
	weights := tensors.FromValue([]float32{0, 0})
	var loss *tensors.Tensor
	for range 200 {
		results := train.MustExec(weights, inputs, labels)
		weights, loss = results[0], results[1]
	}
	fmt.Printf("weights %.3f, loss %.6f\n", weights.Value(), loss.Value())
}
