"""Language models behind one small protocol: embedded, Hugging Face, scripted, replayed."""

from modtools.models.load import load_model
from modtools.models.model import Generation, Message, Model, Request, Sampling, Score, TokenMask, Usage

__all__ = ["Generation", "Message", "Model", "Request", "Sampling", "Score", "TokenMask", "Usage", "load_model"]
