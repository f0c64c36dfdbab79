// Package gomlx tests what GoMLX does on a CPU plugin: its buffers are shared, which means that they are views of memory that
// the program goes on writing to.
package gomlx

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"unsafe"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/go-xla/pkg/types/dtypes"
)

// Sizes below and above what a plugin may find worth copying.
var sizes = []int{1, 3, 4096, 1 << 17}

func newClient(t *testing.T) *pjrt.Client {
	t.Helper()
	plugin, err := pjrt.GetPlugin("cpu")
	check(t, err)
	client, err := plugin.NewClient(nil)
	check(t, err)
	t.Cleanup(func() { check(t, client.Destroy()) })
	return client
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%+v", err)
	}
}

func compile(t *testing.T, client *pjrt.Client, program string) *pjrt.LoadedExecutable {
	t.Helper()
	executable, err := client.Compile().WithStableHLO([]byte(program)).Done()
	check(t, err)
	t.Cleanup(func() { check(t, executable.Destroy()) })
	return executable
}

// shared makes a shared buffer, and gives the slice through which it is written.
func shared[T dtypes.Supported](t *testing.T, client *pjrt.Client, dims ...int) (*pjrt.Buffer, []T) {
	t.Helper()
	buffer, flat, err := client.NewSharedBuffer(dtypes.FromGenericsType[T](), dims)
	check(t, err)
	t.Cleanup(func() { check(t, buffer.Destroy()) })
	return buffer, flat.([]T)
}

func read[T dtypes.Supported](t *testing.T, buffer *pjrt.Buffer) []T {
	t.Helper()
	values, _, err := pjrt.BufferToArray[T](buffer)
	check(t, err)
	return values
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, expected %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d is %v, expected %v", what, i, got[i], want[i])
		}
	}
}

// writesAreSeen writes a buffer again and again after it was made, and expects executions and readbacks to see each write,
// and outputs to stay as they were.
func writesAreSeen[T dtypes.Supported](t *testing.T, ty, body string, value func(int) T, expected func(T) T) {
	client := newClient(t)
	for _, size := range sizes {
		t.Run(fmt.Sprintf("%s/%d", ty, size), func(t *testing.T) {
			tensor := fmt.Sprintf("tensor<%dx%s>", size, ty)
			executable := compile(t, client, strings.ReplaceAll(body, "TENSOR", tensor))
			buffer, flat := shared[T](t, client, size)
			var before *pjrt.Buffer
			var wantBefore []T
			for round := range 5 {
				want := make([]T, size)
				for i := range flat {
					flat[i] = value(round + i)
					want[i] = expected(flat[i])
				}
				outputs, err := executable.Execute(buffer).Done()
				check(t, err)
				equal(t, "the output", read[T](t, outputs[0]), want)
				equal(t, "what is read back", read[T](t, buffer), flat)
				if before != nil {
					equal(t, "the output before the write", read[T](t, before), wantBefore)
					check(t, before.Destroy())
				}
				before, wantBefore = outputs[0], want
			}
			check(t, before.Destroy())
		})
	}
}

const squarePlusOne = `module @main {
  func.func public @main(%x: TENSOR) -> TENSOR {
    %one = stablehlo.constant dense<ONE> : TENSOR
    %square = stablehlo.multiply %x, %x : TENSOR
    %sum = stablehlo.add %square, %one : TENSOR
    return %sum : TENSOR
  }
}`

const not = `module @main {
  func.func public @main(%x: TENSOR) -> TENSOR {
    %not = stablehlo.not %x : TENSOR
    return %not : TENSOR
  }
}`

const identity = `module @main {
  func.func public @main(%x: TENSOR) -> TENSOR {
    return %x : TENSOR
  }
}`

type number interface {
	float32 | float64 | int32 | int8
	dtypes.Supported
}

func numbers[T number](t *testing.T, ty, one string) {
	value := func(i int) T { return T(i % 11) }
	writesAreSeen(t, ty, strings.ReplaceAll(squarePlusOne, "ONE", one), value, func(x T) T { return x*x + 1 })
	writesAreSeen(t, ty, identity, value, func(x T) T { return x })
}

func TestWritesAreSeen(t *testing.T) {
	numbers[float32](t, "f32", "1.0")
	numbers[float64](t, "f64", "1.0")
	numbers[int32](t, "i32", "1")
	numbers[int8](t, "i8", "1")
	odd := func(i int) bool { return i%3 == 1 }
	writesAreSeen(t, "i1", not, odd, func(x bool) bool { return !x })
	writesAreSeen(t, "i1", identity, odd, func(x bool) bool { return x })
}

// TestPointerIsOurs looks at the address that a plugin gives of a shared buffer.
func TestPointerIsOurs(t *testing.T) {
	buffer, flat := shared[float32](t, newClient(t), 5)
	pointer, err := buffer.UnsafePointer()
	check(t, err)
	if pointer != unsafe.Pointer(unsafe.SliceData(flat)) {
		t.Fatalf("the address is %p, not %p", pointer, unsafe.SliceData(flat))
	}
}

// TestUnalignedMemoryIsRefused shares memory that no float32 can lie in.
func TestUnalignedMemoryIsRefused(t *testing.T) {
	client := newClient(t)
	memory := pjrt.AlignedAlloc(64, pjrt.BufferAlignment)
	defer pjrt.AlignedFree(memory)
	_, err := client.CreateViewOfDeviceBuffer(unsafe.Add(memory, 1), dtypes.Float32, []int{4})
	if err == nil || !strings.Contains(err.Error(), "alignment") {
		t.Fatalf("memory that is not aligned gives %v", err)
	}
}

const (
	examples = 64
	features = 8
)

const regression = `module @regression {
  func.func public @main(%w: tensor<8xf32>, %b: tensor<f32>, %x: tensor<64x8xf32>, %y: tensor<64xf32>)
      -> (tensor<f32>, tensor<8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %mean = stablehlo.constant dense<0.015625> : tensor<f32>
    %slope = stablehlo.constant dense<0.03125> : tensor<f32>
    %xw = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8xf32>) -> tensor<64xf32>
    %bs = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %guess = stablehlo.add %xw, %bs : tensor<64xf32>
    %error = stablehlo.subtract %guess, %y : tensor<64xf32>
    %square = stablehlo.multiply %error, %error : tensor<64xf32>
    %squares = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %loss = stablehlo.multiply %squares, %mean : tensor<f32>
    %xe = stablehlo.dot_general %error, %x, contracting_dims = [0] x [0] : (tensor<64xf32>, tensor<64x8xf32>) -> tensor<8xf32>
    %slopes = stablehlo.broadcast_in_dim %slope, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %dw = stablehlo.multiply %xe, %slopes : tensor<8xf32>
    %errors = stablehlo.reduce(%error init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
    %db = stablehlo.multiply %errors, %slope : tensor<f32>
    return %loss, %dw, %db : tensor<f32>, tensor<8xf32>, tensor<f32>
  }
}`

// TestTraining fits a line by gradient descent. The parameters and the batch are shared buffers, written between the steps.
func TestTraining(t *testing.T) {
	client := newClient(t)
	step := compile(t, client, regression)
	w, weights := shared[float32](t, client, features)
	b, bias := shared[float32](t, client)
	x, inputs := shared[float32](t, client, examples, features)
	y, targets := shared[float32](t, client, examples)
	random := rand.New(rand.NewSource(1))
	first, loss := float32(0), float32(0)
	for round := range 300 {
		for i := range targets {
			targets[i] = 0.5
			for j := range features {
				value := float32(random.NormFloat64())
				inputs[i*features+j] = value
				targets[i] += float32(j-3) * value
			}
		}
		outputs, err := step.Execute(w, b, x, y).Done()
		check(t, err)
		loss = read[float32](t, outputs[0])[0]
		if round == 0 {
			first = loss
		}
		for j, slope := range read[float32](t, outputs[1]) {
			weights[j] -= 0.1 * slope
		}
		bias[0] -= 0.1 * read[float32](t, outputs[2])[0]
		for _, output := range outputs {
			check(t, output.Destroy())
		}
	}
	t.Logf("loss %g at first, then %g; weights %v, bias %v", first, loss, weights, bias)
	// Batches that the program does not see have no error either.
	if !(first > 1 && loss < 0.05) {
		t.Fatalf("the loss was %g and is %g", first, loss)
	}
	for j, weight := range weights {
		if math.Abs(float64(weight)-float64(j-3)) > 0.05 {
			t.Fatalf("weight %d is %g, expected %d", j, weight, j-3)
		}
	}
}
