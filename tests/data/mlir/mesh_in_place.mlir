// Groups along the axes of meshes that the attribute itself has.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<8x2xf32>) {
    %0 = "stablehlo.all_to_all"(%a) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, concat_dimension = 1 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<
        mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 8>]>,
        axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (2)2>]>,
      split_count = 2 : i64, split_dimension = 1 : i64
    }> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %1 = "stablehlo.all_gather"(%a) <{
      all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = #stablehlo.replica_group_mesh_axes<
        mesh = #stablehlo.mesh<
          axes = [#stablehlo.mesh_axis<name = "x", size = 4>, #stablehlo.mesh_axis<name = "y", size = 2>],
          device_ids = dense<[7, 6, 5, 4, 3, 2, 1, 0]> : tensor<8xi64>>,
        axes = [#stablehlo.axis_ref<name = "y">]>,
      use_global_device_ids
    }> : (tensor<4x2xf32>) -> tensor<8x2xf32>
    func.return %0, %1 : tensor<4x2xf32>, tensor<8x2xf32>
  }
}
