package gomlx

import (
	"fmt"

	"github.com/gomlx/go-xla/pkg/pjrt"
)

// must returns a value, or stops the program if there is an error.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func Example() {
	plugin := must(pjrt.GetPlugin("cpu"))
	client := must(plugin.NewClient(nil))
	defer client.Destroy()

	program := `module {
  func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.multiply %x, %x : tensor<3xf32>
    return %0 : tensor<3xf32>
  }
}`
	square := must(client.Compile().WithStableHLO([]byte(program)).Done())
	defer square.Destroy()
	x := must(pjrt.ArrayToBuffer(client, []float32{1, 2, 3}, 3))
	defer x.Destroy()
	results := must(square.Execute(x).Done())
	defer results[0].Destroy()
	values, dims, err := pjrt.BufferToArray[float32](results[0])
	fmt.Println(values, dims, err)
	// Output: [1 4 9] [3] <nil>
}
