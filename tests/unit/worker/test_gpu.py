"""Models on a GPU, by a provider that only says it is there: what onnxruntime is asked for, and what is refused."""

from typing import Any

import numpy as np
import onnxruntime
import pytest

from shardqa.worker.ai.backend import File, OnnxModel
from shardqa.worker.ai.messages import ModelError
from tests.onnx_models import adder

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


class FakeProvider:
    """Stands where onnxruntime's sessions are made: they run on the CPU, and say what this was told to say."""

    def __init__(self, works: bool) -> None:
        self.works = works
        self.providers: list[Any] = []
        self._make = onnxruntime.InferenceSession

    def __call__(self, blob: bytes, settings: Any, providers: list[Any]) -> Any:
        self.providers = providers
        session = self._make(blob, settings, providers=[CPU])
        if self.works:
            session.get_providers = lambda: [CUDA, CPU]
        return session


@pytest.fixture
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> FakeProvider:
    fake = FakeProvider(works=request.param)
    monkeypatch.setattr(onnxruntime, "InferenceSession", fake)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [CUDA, CPU])
    return fake


@pytest.mark.parametrize("provider", [True], indirect=True)
@pytest.mark.parametrize(("device", "number"), [("GPU", "0"), ("gpu:1", "1")])
def test_a_model_for_a_gpu_runs_on_the_one_that_it_names(provider: FakeProvider, device: str, number: str) -> None:
    model = OnnxModel(File("ONNX", device, adder()), 1)
    assert provider.providers == [(CUDA, {"device_id": number}), CPU]
    ones = np.ones(3, np.float32)
    assert model.run([ones, ones], model.options())[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("provider", [False], indirect=True)
def test_a_gpu_whose_driver_is_missing_is_an_error_and_not_the_processor(provider: FakeProvider) -> None:
    with pytest.raises(ModelError, match="device GPU can't be used"):
        OnnxModel(File("ONNX", "GPU", adder()), 1)


@pytest.mark.parametrize("provider", [False], indirect=True)
def test_a_model_for_the_processor_asks_for_no_gpu(provider: FakeProvider) -> None:
    OnnxModel(File("ONNX", "CPU:3", adder()), 1)
    assert provider.providers == [CPU]
