package main

func Example() {
	main()
	// Output: weights [3.000 -1.000], loss 0.000000
}
