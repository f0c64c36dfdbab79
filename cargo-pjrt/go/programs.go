package main

import "math"

// programs returns the programs by name, with the results that Go computes.
func programs() map[string]program {
	x, y, w := values(0.25, 4, 8), values(0.5, 4, 8), values(0.125, 8, 2)
	targets := values(0.25, 4, 2)
	sum := func(arguments []array) []float64 {
		return zip(arguments, func(x, y float64) float64 { return x + y })
	}
	return map[string]program{
		"add": {text: add, arguments: []array{x, y}, expected: sum},
		"elementwise": {text: elementwise, arguments: []array{x, y}, expected: func(arguments []array) []float64 {
			return zip(arguments, func(x, y float64) float64 { return 2.5*x + y })
		}},
		"activations": {text: activations, arguments: []array{x}, expected: func(arguments []array) []float64 {
			return zip([]array{arguments[0], arguments[0]}, func(x, _ float64) float64 { return math.Tanh(x) })
		}},
		"dot": {text: dot, arguments: []array{x, w}, expected: func(arguments []array) []float64 {
			return product(arguments[0], arguments[1])
		}},
		"reduction": {text: reduction, arguments: []array{x}, expected: func(arguments []array) []float64 {
			sums := make([]float64, 4)
			for i, number := range arguments[0].values {
				sums[i/8] += float64(number)
			}
			return sums
		}},
		"donation": {text: donation, arguments: []array{x, y}, donated: true, steps: 3, expected: sum},
		"gradient": {text: gradient, arguments: []array{w, x, targets}, expected: func(arguments []array) []float64 {
			return slope(arguments)
		}},
		"training": {text: training, arguments: []array{w, x, targets}, donated: true, steps: 5, expected: func(arguments []array) []float64 {
			changed := slope(arguments)
			for i, number := range arguments[0].values {
				changed[i] = float64(number) - 0.01*changed[i]
			}
			return changed
		}},
	}
}

// zip applies a function to the elements of two arrays.
func zip(arguments []array, f func(x, y float64) float64) []float64 {
	result := make([]float64, len(arguments[0].values))
	for i := range result {
		result[i] = f(float64(arguments[0].values[i]), float64(arguments[1].values[i]))
	}
	return result
}

// product returns the product of two matrices.
func product(x, y array) []float64 {
	rows, inner, columns := x.dims[0], x.dims[1], y.dims[1]
	result := make([]float64, rows*columns)
	for i := range rows {
		for k := range inner {
			for j := range columns {
				result[i*columns+j] += float64(x.values[i*inner+k]) * float64(y.values[k*columns+j])
			}
		}
	}
	return result
}

// slope returns the gradient of half the squared error of a linear model: the transposed inputs times the errors.
func slope(arguments []array) []float64 {
	w, x, targets := arguments[0], arguments[1], arguments[2]
	errors := product(x, w)
	result := make([]float64, len(w.values))
	for row := range x.dims[0] {
		for j := range w.dims[1] {
			off := errors[row*w.dims[1]+j] - float64(targets.values[row*w.dims[1]+j])
			for k := range x.dims[1] {
				result[k*w.dims[1]+j] += float64(x.values[row*x.dims[1]+k]) * off
			}
		}
	}
	return result
}

const add = `func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.add %x, %y : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}`

const elementwise = `func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %factor = stablehlo.constant dense<2.5> : tensor<4x8xf32>
  %0 = stablehlo.multiply %factor, %x : tensor<4x8xf32>
  %1 = stablehlo.add %0, %y : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}`

const activations = `func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.tanh %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}`

const dot = `func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}`

const reduction = `func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}`

const donation = `func.func @main(%x: tensor<4x8xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.add %x, %y : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}`

const gradient = `func.func @main(%w: tensor<8x2xf32>, %x: tensor<4x8xf32>, %targets: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %1 = stablehlo.subtract %0, %targets : tensor<4x2xf32>
  %2 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %3 : tensor<8x2xf32>
}`

const training = `func.func @main(%w: tensor<8x2xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<4x8xf32>, %targets: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %1 = stablehlo.subtract %0, %targets : tensor<4x2xf32>
  %2 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.dot_general %2, %1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %rate = stablehlo.constant dense<0.01> : tensor<8x2xf32>
  %4 = stablehlo.multiply %rate, %3 : tensor<8x2xf32>
  %5 = stablehlo.subtract %w, %4 : tensor<8x2xf32>
  return %5 : tensor<8x2xf32>
}`
