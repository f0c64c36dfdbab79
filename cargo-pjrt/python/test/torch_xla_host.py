"""The programs of `cargo pjrt test` in PyTorch/XLA, and the same on PyTorch's own CPU device."""

import os

import programs


def connect(request):
    """Registers the plugin as its wheel does, and returns the version of PyTorch/XLA and the programs."""
    name = request["platform"].upper()
    os.environ["PJRT_DEVICE"] = name
    import torch_xla
    from torch_xla.experimental import plugins

    class Plugin(plugins.DevicePlugin):
        def library_path(self):
            return request["library"]

        def client_create_options(self):
            return request["options"]

        def configure_single_process(self):
            pass

    plugins.use_dynamic_plugins()
    plugins.register_plugin(name, Plugin())
    return torch_xla.__version__, Programs(torch_xla).all()


class Programs:
    """The programs on a device."""

    def __init__(self, torch_xla):
        import torch

        self.torch, self.torch_xla = torch, torch_xla
        self.device = torch_xla.device()

    def sync(self):
        """Compiles and executes what is pending. PyTorch/XLA drops the code of an error, so an error before the execution counts
        as that of the compilation."""
        from torch_xla.debug import metrics

        count = lambda name: (metrics.metric_data(name) or (0,))[0]
        before = count("ExecuteTime")
        try:
            self.torch_xla.sync()
        except Exception as error:
            if count("ExecuteTime") == before:
                raise programs.Refused(str(error)) from error
            raise

    def all(self):
        torch = self.torch
        reductions = lambda x: (x.sum(0), x.amax(1), x.mean(), x.argmax(-1))
        activations = lambda x: (torch.tanh(x), torch.sigmoid(x), torch.nn.functional.silu(x))
        x, y = (4, 8, 0.25), (4, 8, 0.5)
        return {
            "add": lambda: self.agree(lambda x, y: x + y, x, y),
            "elementwise": lambda: self.agree(lambda x, y: 2.5 * x + y, x, y),
            "activations": lambda: self.agree(activations, x),
            "dot": lambda: self.agree(lambda x, y: x @ y, x, (8, 4, 0.25)),
            "reduction": lambda: self.agree(reductions, x),
            "donation": lambda: self.agree(self.in_place, x, y),
            "gradient": lambda: list(zip(self.gradient(self.device), self.gradient("cpu"))),
            "training": lambda: list(zip(self.training(self.device), self.training("cpu"))),
        }

    def array(self, device, *dims, scale=0.25):
        count = 1
        for dim in dims:
            count *= dim
        return self.torch.tensor(programs.values(count, scale)).reshape(dims).to(device)

    def numbers(self, results):
        """The results as lists of numbers."""
        results = results if isinstance(results, (list, tuple)) else [results]
        self.sync()
        return [tensor.detach().cpu().double().flatten().tolist() for tensor in results]

    def agree(self, function, *arguments):
        """A function on the device and on the CPU."""

        def run(device):
            return self.numbers(function(*(self.array(device, *dims, scale=scale) for *dims, scale in arguments)))

        return list(zip(run(self.device), run("cpu")))

    def in_place(self, x, y):
        """A tensor that changes in place: PyTorch/XLA donates its array."""
        self.sync()
        x += y
        self.sync()
        x *= 1.0
        return x, y

    def model(self, device):
        torch = self.torch
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(self.array("cpu", *parameter.shape))
        return model.to(device)

    def loss(self, model, device):
        return ((model(self.array(device, 4, 8)) - self.array(device, 4, 4)) ** 2).mean()

    def gradient(self, device):
        model = self.model(device)
        self.loss(model, device).backward()
        return self.numbers([parameter.grad for parameter in model.parameters()])

    def training(self, device):
        """The losses of some steps of gradient descent, and the parameters after these."""
        model = self.model(device)
        optimizer = self.torch.optim.SGD(model.parameters(), lr=0.01)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = self.loss(model, device)
            loss.backward()
            optimizer.step()
            self.sync()
            losses.append(loss)
        return self.numbers([*losses, *model.parameters()])


programs.run(connect)
