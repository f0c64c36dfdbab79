// Groups along the axes of declared meshes: one axis, several, a part of one, none, with the mesh's own order of devices.
module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}}
  sdy.mesh @permuted = <["a"=2, "b"=2, "c"=2], device_ids=[0, 3, 6, 1, 7, 2, 5, 4]>
  sdy.mesh @line = <["x"=8]>
  sdy.mesh @reversed = <["x"=4, "y"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
  func.func @main(%a: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<16x2xf32>, tensor<4x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>) {
    %0 = "stablehlo.all_reduce"(%a) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = #stablehlo.replica_group_mesh_axes<
        mesh = @mesh, axes = [#stablehlo.axis_ref<name = "y">, #stablehlo.axis_ref<name = "x">]>,
      use_global_device_ids
    }> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %1 = "stablehlo.all_gather"(%a) <{
      all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = #stablehlo.replica_group_mesh_axes<
        mesh = @permuted, axes = [#stablehlo.axis_ref<name = "a">, #stablehlo.axis_ref<name = "c">]>,
      use_global_device_ids
    }> : (tensor<4x2xf32>) -> tensor<16x2xf32>
    %2 = "stablehlo.all_to_all"(%a) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, concat_dimension = 1 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<
        mesh = @line, axes = [#stablehlo.axis_ref<name = "x", sub_axis_info = (2)2>]>,
      split_count = 2 : i64, split_dimension = 1 : i64
    }> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %3 = "stablehlo.reduce_scatter"(%a) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = #stablehlo.replica_group_mesh_axes<
        mesh = @reversed, axes = [#stablehlo.axis_ref<name = "y">]>,
      scatter_dimension = 0 : i64, use_global_device_ids
    }> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<2x2xf32>
    %4 = "stablehlo.collective_broadcast"(%a) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>
    }> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %5 = "stablehlo.all_reduce"(%a) <{
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = []>, use_global_device_ids
    }> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    func.return %0, %1, %2, %3, %4, %5 : tensor<4x2xf32>, tensor<16x2xf32>, tensor<4x2xf32>, tensor<2x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>
  }
}
