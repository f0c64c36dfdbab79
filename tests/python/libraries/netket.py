"""Finds the ground state of a chain of ten spins by variational Monte Carlo, and the true energy by diagonalization."""

import netket as nk

PACKAGES = ("netket",)
TOLERANCE = 1e-6


def run():
    space = nk.hilbert.Spin(s=1 / 2, N=10)
    graph = nk.graph.Chain(10)
    ising = nk.operator.IsingJax(hilbert=space, graph=graph, h=1.0)
    sampler = nk.sampler.MetropolisLocal(space, n_chains=16)
    model = nk.models.RBM(alpha=1, param_dtype=float)
    state = nk.vqs.MCState(sampler, model, n_samples=256, seed=18, sampler_seed=19)
    driver = nk.driver.VMC_SR(ising, nk.optimizer.Sgd(0.05), variational_state=state, diag_shift=0.01)
    log = nk.logging.RuntimeLog()
    driver.run(20, out=log, show_progress=False)
    energies = log.data["Energy"]["Mean"]
    return {"energies": energies, "parameters": state.parameters["Dense"]["kernel"], "exact": nk.exact.lanczos_ed(ising)}
