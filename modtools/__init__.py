"""modtools: build and measure the tool interface of a language-model agent.

The library has three ways through it: schema -> mask -> text (masking, models), text -> call -> observation
(pipeline, catalogue, surfaces), and episodes -> statistics -> report (lab). Nothing heavy is imported here.
"""

__version__ = "0.1.0"
